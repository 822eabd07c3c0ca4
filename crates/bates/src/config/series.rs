//! The series of a configuration: each judged by itself, then against the others.

use std::collections::BTreeMap;
use std::fmt::Display;

use bates_api::Description;
use bates_core::{PoolSettings, Promise, ScopeMatch, SeriesName, SeriesSpec};
use serde::de::DeserializeOwned;

use super::Mistakes;
use super::tree::Node;

#[derive(Clone, Debug)]
pub(crate) struct PoolOf {
    pub(crate) series: SeriesName,
    pub(crate) pool: bates_redis::Description,
    pub(crate) settings: PoolSettings,
}

#[derive(Default)]
pub(super) struct Described {
    pub(super) specs: Vec<SeriesSpec>,
    pub(super) sinks: BTreeMap<SeriesName, bates_sinks::Description>,
    pub(super) documents: BTreeMap<SeriesName, bates_sinks::DocumentsDescription>,
    pub(super) pools: Vec<PoolOf>,
}

pub(super) fn read(node: Option<&Node>, mistakes: &mut Mistakes) -> Described {
    let mut described = Described::default();
    let Some(node) = node else { return described };
    let Some(entries) = node.entries() else {
        mistakes.add(&node.origin, "series: expected a map of names and descriptions");
        return described;
    };
    for (name, node) in entries {
        let sink = opened(name, node, "sink", bates_sinks::Description::open, mistakes);
        let documents = opened(name, node, "documents", bates_sinks::DocumentsDescription::open, mistakes);
        let pool = opened(name, node, "pool", bates_redis::Description::address, mistakes);
        let plain = node.without(&["sink", "documents", "pool"]);
        let Some(spec) = one(name, &plain, mistakes) else { continue };
        let spec = SeriesSpec { has_sink: sink.is_some(), ..spec };
        described.sinks.extend(sink.map(|sink| (spec.name.clone(), sink)));
        described.documents.extend(documents.map(|documents| (spec.name.clone(), documents)));
        if let Some(pool) = pool {
            match pool_of(&spec, pool).and_then(|pool| apart(pool, &described.pools)) {
                Ok(pool) => described.pools.push(pool),
                Err(problem) => mistakes.at(node, "pool", format!("series {name:?}: pool: {problem}")),
            }
        }
        let specs = &mut described.specs;
        if let Err(error) = specs.iter().try_for_each(|other| spec.check_apart(other)) {
            mistakes.add(node.origin_of(error.field()), error.to_string());
        }
        specs.push(spec);
    }
    described
}

/// Checks the description at a key of a series; whether its server answers shows in use.
fn opened<T: DeserializeOwned, O, E: Display>(
    name: &str,
    series: &Node,
    key: &str,
    open: impl Fn(&T) -> Result<O, E>,
    mistakes: &mut Mistakes,
) -> Option<T> {
    let description: T = parsed(name, series.get(key)?, &format!("{key}: "), mistakes)?;
    match open(&description) {
        Ok(_) => Some(description),
        Err(error) => {
            mistakes.at(series, key, format!("series {name:?}: {key}: {error}"));
            None
        }
    }
}

fn pool_of(spec: &SeriesSpec, pool: bates_redis::Description) -> Result<PoolOf, String> {
    let mut settings = pool.settings(spec.value).map_err(|error| error.to_string())?;
    if spec.promise != Promise::Unique {
        return Err(format!(
            "a series with a pool is unique, and this one is {}: programs take from a list in no order that Bates knows",
            spec.promise.name()
        ));
    }
    let (pattern, _) = spec.check().map_err(|error| error.to_string())?;
    if pattern.needs_date() {
        return Err("a series that shows a date has no pool: its numbers would be of the day on which they were pushed".into());
    }
    let parameters = spec.parameters(&pattern);
    let told = if parameters.is_empty() { "none".to_owned() } else { parameters.join(", ") };
    // Invariant: two scopes never share a list.
    let is_all = |names: &mut dyn Iterator<Item = &str>| {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names == parameters
    };
    if !is_all(&mut settings.key.parameters()) {
        return Err(format!("key {} must name the parameters of a scope, each once: {told}", settings.key));
    }
    if let Some(value) = settings.scopes.iter().find_map(ScopeMatch::strange) {
        return Err(format!("scopes: {value:?} is no value, and any value is written *"));
    }
    if let Some(scope) = settings.scopes.iter().find(|scope| !is_all(&mut scope.names())) {
        let names: Vec<&str> = scope.names().collect();
        return Err(format!("scopes: one has the parameters {}; it needs exactly {told}", names.join(", ")));
    }
    if parameters.is_empty() {
        // The only scope need not be named.
        settings.scopes = vec![ScopeMatch::new([])];
    }
    Ok(PoolOf { series: spec.name.clone(), pool, settings })
}

/// Invariant: two series never share a list.
fn apart(pool: PoolOf, others: &[PoolOf]) -> Result<PoolOf, String> {
    let meets =
        |other: &&PoolOf| pool.pool.is_beside(&other.pool) && pool.settings.key.may_meet(&other.settings.key);
    match others.iter().find(meets) {
        Some(other) => Err(format!(
            "key {} could be a key {} of series {:?} on the same Redis: give it another prefix",
            pool.settings.key,
            other.settings.key,
            other.series.as_str()
        )),
        None => Ok(pool),
    }
}

fn one(name: &str, node: &Node, mistakes: &mut Mistakes) -> Option<SeriesSpec> {
    let series = name.parse::<SeriesName>();
    let series = series.map_err(|error| mistakes.add(&node.origin, error.to_string())).ok()?;
    let description: Description = parsed(name, node, "", mistakes)?;
    let judged = match bates_server::series::spec(&description, series.clone()) {
        Ok(spec) => spec.check().map(|_| Some(spec)),
        Err(errors) => {
            for error in errors.0 {
                mistakes.at(node, error.field, format!("series {name:?}: {error}"));
            }
            // Report mistakes of the pattern with the others.
            SeriesSpec::new(series, &description.pattern).check().map(|_| None)
        }
    };
    judged.map_err(|error| mistakes.add(node.origin_of(error.field()), error.to_string())).ok()?
}

fn parsed<T: DeserializeOwned>(name: &str, node: &Node, of: &str, mistakes: &mut Mistakes) -> Option<T> {
    let tell = |error: serde_path_to_error::Error<_>| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let field: String = path.iter().flat_map(|part| [part, ": "]).collect();
        let problem = format!("series {name:?}: {of}{field}{}", error.inner());
        mistakes.add(node.origin_of(path.iter().map(String::as_str)), problem);
    };
    serde_path_to_error::deserialize(node.plain()).map_err(tell).ok()
}

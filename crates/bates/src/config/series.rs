//! The series of a configuration: each judged by itself, then against the others.

use std::fmt::Display;

use bates_api::Description;
use bates_core::{MachineError, PoolSettings, Promise, ScopeMatch, SeriesName, SeriesSpec};
use serde::de::DeserializeOwned;

use super::Mistake;
use super::tree::Node;

/// Where the documents of a series go.
#[derive(Clone, Debug)]
pub(crate) struct SinkOf {
    pub(crate) series: SeriesName,
    pub(crate) sink: bates_sinks::Description,
}

/// Where the user's own documents of a series are.
#[derive(Clone, Debug)]
pub(crate) struct DocumentsOf {
    pub(crate) series: SeriesName,
    pub(crate) documents: bates_sinks::DocumentsDescription,
}

/// The shared pools of a series.
#[derive(Clone, Debug)]
pub(crate) struct PoolOf {
    pub(crate) series: SeriesName,
    pub(crate) pool: bates_redis::Description,
    pub(crate) settings: PoolSettings,
}

/// The series of a configuration, and what of them is outside.
#[derive(Default)]
pub(super) struct Described {
    pub(super) specs: Vec<SeriesSpec>,
    pub(super) sinks: Vec<SinkOf>,
    pub(super) documents: Vec<DocumentsOf>,
    pub(super) pools: Vec<PoolOf>,
}

/// Reads every series, and notes every mistake.
pub(super) fn read(node: Option<&Node>, mistakes: &mut Vec<Mistake>) -> Described {
    let Some(node) = node else { return Described::default() };
    let Some(entries) = node.entries() else {
        let problem = "series: expected a map of names and descriptions".to_owned();
        mistakes.push(Mistake { origin: node.origin.clone(), problem });
        return Described::default();
    };
    let mut described = Described::default();
    for (name, node) in entries {
        let open = bates_sinks::Description::open;
        let sink = node.get("sink").and_then(|sink| opened(name, sink, "sink: ", open, mistakes));
        let open = bates_sinks::DocumentsDescription::open;
        let documents = node.get("documents");
        let documents = documents.and_then(|node| opened(name, node, "documents: ", open, mistakes));
        let pool = node
            .get("pool")
            .map(|pool| (pool, opened(name, pool, "pool: ", bates_redis::Description::address, mistakes)));
        let plain = node.without("sink").without("documents").without("pool");
        let Some(spec) = one(name, &plain, mistakes) else { continue };
        let spec = SeriesSpec { has_sink: sink.is_some(), ..spec };
        let series = || spec.name.clone();
        described.sinks.extend(sink.map(|sink| SinkOf { series: series(), sink }));
        described.documents.extend(documents.map(|documents| DocumentsOf { series: series(), documents }));
        if let Some((node, Some(pool))) = pool {
            match pool_of(&spec, pool).and_then(|pool| apart(pool, &described.pools)) {
                Ok(pool) => described.pools.push(pool),
                Err(problem) => {
                    let problem = format!("series {name:?}: pool: {problem}");
                    mistakes.push(Mistake { origin: node.origin.clone(), problem });
                }
            }
        }
        let specs = &mut described.specs;
        if let Err(error) = specs.iter().try_for_each(|other| spec.check_apart(other)) {
            mistakes.push(of_machine(node, &error));
        }
        specs.push(spec);
    }
    described
}

/// What is described as it can be. Whether it is there shows when it is used.
fn opened<T: DeserializeOwned, O, E: Display>(
    name: &str,
    node: &Node,
    of: &str,
    open: impl Fn(&T) -> Result<O, E>,
    mistakes: &mut Vec<Mistake>,
) -> Option<T> {
    let described: Result<T, Mistake> = deserialized(name, node, of);
    let described = described.and_then(|description| match open(&description) {
        Ok(_) => Ok(description),
        Err(error) => {
            let problem = format!("series {name:?}: {of}{error}");
            Err(Mistake { origin: node.origin.clone(), problem })
        }
    });
    described.map_err(|mistake| mistakes.push(mistake)).ok()
}

/// The pools of a series, if it can have any.
fn pool_of(spec: &SeriesSpec, pool: bates_redis::Description) -> Result<PoolOf, String> {
    let mut settings = pool.settings(spec.value).map_err(|error| error.to_string())?;
    if spec.promise != Promise::Unique {
        let promise = spec.promise.name();
        return Err(format!(
            "a series with a pool is unique, and this one is {promise}: programs take from a list in no order that Bates knows"
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
        // There is one scope, and it need not be named.
        settings.scopes = vec![ScopeMatch::new([])];
    }
    Ok(PoolOf { series: spec.name.clone(), pool, settings })
}

/// Two series never share a list.
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

fn one(name: &str, node: &Node, mistakes: &mut Vec<Mistake>) -> Option<SeriesSpec> {
    let series: SeriesName = match name.parse() {
        Ok(series) => series,
        Err(error) => {
            let error: bates_core::NameError = error;
            mistakes.push(Mistake { origin: node.origin.clone(), problem: error.to_string() });
            return None;
        }
    };
    let description: Description =
        deserialized(name, node, "").map_err(|mistake| mistakes.push(mistake)).ok()?;
    let judged = match bates_server::series::spec(&description, series.clone()) {
        Ok(spec) => spec.check().map(|_| Some(spec)),
        Err(errors) => {
            for error in errors.0 {
                let problem = format!("series {name:?}: {error}");
                mistakes.push(Mistake { origin: node.origin_of([error.field]).clone(), problem });
            }
            // What can be told of the pattern alone is told with the rest.
            SeriesSpec::new(series, &description.pattern).check().map(|_| None)
        }
    };
    judged.map_err(|error| mistakes.push(of_machine(node, &error))).ok()?
}

fn deserialized<T: DeserializeOwned>(name: &str, node: &Node, of: &str) -> Result<T, Mistake> {
    serde_path_to_error::deserialize(node.plain()).map_err(|error| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let origin = node.origin_of(path.iter().map(String::as_str)).clone();
        let inner = error.into_inner().to_string();
        let field = if path.is_empty() { String::new() } else { path.join(": ") + ": " };
        Mistake { origin, problem: format!("series {name:?}: {of}{field}{inner}") }
    })
}

fn of_machine(node: &Node, error: &MachineError) -> Mistake {
    Mistake { origin: node.origin_of(error.field()).clone(), problem: error.to_string() }
}

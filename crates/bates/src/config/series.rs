//! Reads the series of a configuration: each by itself, then against the others.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use bates_api::SeriesDescription;
use bates_core::{PoolSet, PoolSettings, ScopeMatcher, SeriesName, SeriesSpec, offered_pool_key};
use bates_redis::{PoolDescription, PoolDescriptionError};
use bates_sinks::{DocumentSourceDescription, SinkDescription};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::tree::Node;
use super::{Mistakes, hint};

#[derive(Clone, Debug)]
pub(crate) struct SeriesPool {
    pub(crate) series: SeriesName,
    pub(crate) pool: PoolDescription,
    pub(crate) settings: PoolSettings,
}

#[derive(Default)]
pub(super) struct SeriesConfig {
    pub(super) specs: Vec<SeriesSpec>,
    pub(super) sinks: BTreeMap<SeriesName, SinkDescription>,
    pub(super) document_sources: BTreeMap<SeriesName, DocumentSourceDescription>,
    pub(super) pools: Vec<SeriesPool>,
}

pub(super) fn read(node: Option<&Node>, mistakes: &mut Mistakes) -> SeriesConfig {
    let mut described = SeriesConfig::default();
    let Some(node) = node else { return described };
    let Some(entries) = node.entries() else {
        mistakes.add(&node.origin, "series: expected a map of names and descriptions");
        return described;
    };
    for (name, node) in entries {
        let sink = read_part(name, node, "sink", SinkDescription::open, mistakes);
        let documents = read_part(name, node, "documents", DocumentSourceDescription::open, mistakes);
        let pool = read_part(name, node, "pool", PoolDescription::address, mistakes);
        let plain = node.without(&["sink", "documents", "pool"]);
        let Some(spec) = read_spec(name, &plain, mistakes) else { continue };
        let spec = SeriesSpec { has_sink: sink.is_some(), has_pool: pool.is_some(), ..spec };
        described.sinks.extend(sink.map(|sink| (spec.name.clone(), sink)));
        described.document_sources.extend(documents.map(|documents| (spec.name.clone(), documents)));
        if let Err(error) = spec.check().map(drop)
            && pool.is_some()
        {
            mistakes.add_at(node, "pool", error.to_string());
        } else if let Some(pool) = pool {
            match SeriesPool::new(&spec, pool).and_then(|pool| require_distinct_key(pool, &described.pools)) {
                Ok(pool) => described.pools.push(pool),
                Err(problem) => mistakes.add_at(node, "pool", format!("series {name:?}: pool: {problem}")),
            }
        }
        let specs = &mut described.specs;
        if let Err(error) = specs.iter().try_for_each(|other| spec.check_distinct_from(other)) {
            mistakes.add(node.origin_of(error.field()), error.to_string());
        }
        specs.push(spec);
    }
    described
}

/// Reads the sink, documents or pool of a series and checks it, without connecting.
fn read_part<T: DeserializeOwned, O, E: Display>(
    name: &str,
    series: &Node,
    key: &str,
    open: impl Fn(&T) -> Result<O, E>,
    mistakes: &mut Mistakes,
) -> Option<T> {
    let description: T = deserialize(name, series.get(key)?, &format!("{key}: "), mistakes)?;
    match open(&description) {
        Ok(_) => Some(description),
        Err(error) => {
            mistakes.add_at(series, key, format!("series {name:?}: {key}: {error}"));
            None
        }
    }
}

impl SeriesPool {
    fn new(spec: &SeriesSpec, pool: PoolDescription) -> Result<Self, String> {
        let settings = pool.settings(spec.value).map_err(|error| error.to_string())?;
        Self::with_settings(spec, pool, settings)
    }

    /// The pool that a series names which was created at run time. `others` are those of the configuration.
    pub(crate) fn offered(spec: &SeriesSpec, pool: PoolDescription, others: &[Self]) -> Result<Self, String> {
        let (pattern, _) = spec.check().map_err(|error| error.to_string())?;
        let key =
            offered_pool_key(&spec.name, &spec.parameters(&pattern)).map_err(|error| error.to_string())?;
        let settings = pool.settings_with_key(spec.value, key).map_err(|error| error.to_string())?;
        Self::with_settings(spec, pool, settings).and_then(|pool| require_distinct_key(pool, others))
    }

    fn with_settings(
        spec: &SeriesSpec,
        pool: PoolDescription,
        mut settings: PoolSettings,
    ) -> Result<Self, String> {
        let (pattern, _) = spec.check().map_err(|error| error.to_string())?;
        let parameters = spec.parameters(&pattern);
        let expected = if parameters.is_empty() { "none".to_owned() } else { parameters.join(", ") };
        // Invariant: two scopes never share a list.
        let is_all = |names: &mut dyn Iterator<Item = &str>| {
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            names == parameters
        };
        if !is_all(&mut settings.key.parameters()) {
            return Err(format!(
                "key {} must contain each parameter of a scope once: {expected}",
                settings.key
            ));
        }
        if let Some(value) = settings.scopes.iter().find_map(ScopeMatcher::invalid_value) {
            return Err(format!("scopes: invalid value {value:?}; * stands for any value"));
        }
        if let Some(scope) = settings.scopes.iter().find(|scope| !is_all(&mut scope.names())) {
            let names: Vec<&str> = scope.names().collect();
            let names = names.join(", ");
            return Err(format!("scopes: found the parameters {names}; expected exactly {expected}"));
        }
        if parameters.is_empty() {
            // A series without parameters has one scope, which need not be listed.
            settings.scopes = vec![ScopeMatcher::new([])];
        }
        Ok(Self { series: spec.name.clone(), pool, settings })
    }

    /// Does not connect yet.
    pub(crate) fn open(&self, store: Uuid) -> Result<Arc<PoolSet>, PoolDescriptionError> {
        Ok(Arc::new(PoolSet::new(Box::new(self.pool.open(store)?), self.settings.clone())))
    }
}

/// Invariant: two series never share a list.
fn require_distinct_key(pool: SeriesPool, others: &[SeriesPool]) -> Result<SeriesPool, String> {
    let meets = |other: &&SeriesPool| {
        pool.pool.has_same_address(&other.pool) && pool.settings.key.may_overlap(&other.settings.key)
    };
    match others.iter().find(meets) {
        Some(other) => Err(format!(
            "key {} could equal a key {} of series {:?} on the same Redis: use another prefix",
            pool.settings.key,
            other.settings.key,
            other.series.as_str()
        )),
        None => Ok(pool),
    }
}

fn read_spec(name: &str, node: &Node, mistakes: &mut Mistakes) -> Option<SeriesSpec> {
    let series = name.parse::<SeriesName>();
    let series = series.map_err(|error| mistakes.add(&node.origin, error.to_string())).ok()?;
    let description: SeriesDescription = deserialize(name, node, "", mistakes)?;
    let judged = match bates_server::series::build_spec(&description, series.clone()) {
        Ok(spec) => spec.check().map(|_| Some(spec)),
        Err(errors) => {
            for error in errors.0 {
                mistakes.add_at(node, error.field, format!("series {name:?}: {error}"));
            }
            // Report mistakes in the pattern as well.
            let time_zone = description.time_zone.as_str().into();
            SeriesSpec { time_zone, ..SeriesSpec::new(series, &description.pattern) }.check().map(|_| None)
        }
    };
    judged.map_err(|error| mistakes.add(node.origin_of(error.field()), error.to_string())).ok()?
}

/// Reads a description. Each mistake is recorded and left out, so that the rest is read, too.
fn deserialize<T: DeserializeOwned>(name: &str, node: &Node, of: &str, mistakes: &mut Mistakes) -> Option<T> {
    let mut rest = node.clone();
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(rest.to_json()) {
            Ok(description) => return Some(description),
            Err(error) => error,
        };
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let is_removed = rest.remove(&parts);
        // What lacks a part that was left out is no mistake of its own.
        if is_removed || rest.to_json() == node.to_json() {
            let field: String = parts.iter().flat_map(|part| [part, ": "]).collect();
            let problem =
                format!("series {name:?}: {of}{field}{}", hint::explain(&error.inner().to_string()));
            mistakes.add(node.origin_of(parts.iter().copied()), problem);
        }
        if !is_removed {
            return None;
        }
    }
}

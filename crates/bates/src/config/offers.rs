//! Reads the sinks and pools that an operator offers, by name, to series which are created at run time.

use std::collections::BTreeMap;
use std::sync::Arc;

use bates_core::{ListValue, SeriesName, SeriesPattern, SeriesSet, offered_pool_key};
use bates_redis::PoolDescription;
use bates_sinks::SinkDescription;
use serde::de::DeserializeOwned;

use super::Mistakes;
use super::permissions::read_words;
use super::reader::Reader;
use super::tree::Node;

/// What some series may name.
#[derive(Clone, Debug)]
pub(crate) struct Offer<T> {
    pub(crate) offered: T,
    pub(crate) offered_to: SeriesSet,
}

pub(crate) type OfferedSinks = BTreeMap<String, Offer<SinkDescription>>;
pub(crate) type OfferedPools = BTreeMap<String, Offer<PoolDescription>>;

/// The offer of this name, if it is made to the series.
pub(crate) fn find_offer<'o, T>(
    offers: &'o BTreeMap<String, Offer<T>>,
    name: &str,
    series: &SeriesName,
) -> Option<&'o T> {
    let offer = offers.get(name).filter(|offer| offer.offered_to.contains(series));
    offer.map(|offer| &offer.offered)
}

pub(super) fn read_sinks(tree: &Node, mistakes: &mut Mistakes) -> OfferedSinks {
    let check = |sink: &SinkDescription| match sink.open() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {}", error.field, error.problem)),
    };
    read(tree.get("sinks"), "sink", check, mistakes)
}

pub(super) fn read_pools(tree: &Node, mistakes: &mut Mistakes) -> OfferedPools {
    let check = |pool: &PoolDescription| {
        if pool.names_lists() {
            let names = "each list is named PREFIX:pool:SERIES, with the values of its scope";
            return Err(format!("key and scopes are for the pool of one series; here, {names}"));
        }
        pool.address().map_err(|error| error.to_string())?;
        // Any key shows whether the rest is valid.
        let series = "example".parse().map_err(|_| "an example is no name".to_owned())?;
        let key = offered_pool_key(&series, &[]).map_err(|error| error.to_string())?;
        pool.settings_with_key(ListValue::Id, key).map(drop).map_err(|error| error.to_string())
    };
    read(tree.get("pools"), "pool", check, mistakes)
}

fn read<T: DeserializeOwned>(
    node: Option<&Node>,
    kind: &str,
    check: impl Fn(&T) -> Result<(), String>,
    mistakes: &mut Mistakes,
) -> BTreeMap<String, Offer<T>> {
    let mut offers = BTreeMap::new();
    let Some(node) = node else { return offers };
    let Some(entries) = node.entries() else {
        mistakes.add(&node.origin, format!("{kind}s: expected a map of names and {kind}s"));
        return offers;
    };
    for (name, node) in entries {
        let of = format!("{kind} {name:?}: ");
        let offered_to = read_offered_to(&of, &mut Reader { tree: node, mistakes });
        let plain = node.without(&["offered_to"]);
        let described = serde_path_to_error::deserialize::<_, T>(plain.to_json());
        let described = described.map_err(|error| format!("{}: {}", error.path(), error.inner()));
        match (described.and_then(|offered| check(&offered).map(|()| offered)), offered_to) {
            (Ok(offered), Some(offered_to)) => {
                offers.insert(name.clone(), Offer { offered, offered_to });
            }
            (Err(problem), _) => mistakes.add(&node.origin, format!("{of}{problem}")),
            (Ok(_), None) => {}
        }
    }
    offers
}

/// Without it, a tenant could use what its operator meant for others.
fn read_offered_to(of: &str, reader: &mut Reader<'_, '_>) -> Option<SeriesSet> {
    let Some(node) = reader.tree.get("offered_to") else {
        let hint = format!("{of}expected offered_to: the series that may name it, such as [\"acme.*\"]");
        reader.mistakes.add(&reader.tree.origin, hint);
        return None;
    };
    let mut patterns: Vec<SeriesPattern> = Vec::new();
    for word in read_words(reader, node, &format!("{of}offered_to"))? {
        match word.parse() {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => reader.mistakes.add(&node.origin, format!("{of}offered_to: {error}")),
        }
    }
    Some(SeriesSet::Patterns(Arc::from(patterns)))
}

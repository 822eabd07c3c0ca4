//! Reads the named sinks that an operator offers to series which are created at run time.

use std::collections::BTreeMap;
use std::sync::Arc;

use bates_core::{SeriesPattern, SeriesSet};
use bates_sinks::SinkDescription;

use super::Mistakes;
use super::permissions::read_words;
use super::reader::Reader;
use super::tree::Node;

/// A sink that some series may name.
#[derive(Clone, Debug)]
pub(crate) struct OfferedSink {
    pub(crate) sink: SinkDescription,
    pub(crate) offered_to: SeriesSet,
}

pub(super) fn read(node: Option<&Node>, mistakes: &mut Mistakes) -> BTreeMap<String, OfferedSink> {
    let mut offers = BTreeMap::new();
    let Some(node) = node else { return offers };
    let Some(entries) = node.entries() else {
        mistakes.add(&node.origin, "sinks: expected a map of names and sinks");
        return offers;
    };
    for (name, node) in entries {
        let offered_to = read_offered_to(name, &mut Reader { tree: node, mistakes });
        let plain = node.without(&["offered_to"]);
        let described = serde_path_to_error::deserialize::<_, SinkDescription>(plain.to_json());
        let described = described.map_err(|error| (error.path().to_string(), error.inner().to_string()));
        let opened = described.and_then(|sink| match sink.open() {
            Ok(_) => Ok(sink),
            Err(error) => Err((error.field.to_owned(), error.problem.into())),
        });
        match (opened, offered_to) {
            (Ok(sink), Some(offered_to)) => {
                offers.insert(name.clone(), OfferedSink { sink, offered_to });
            }
            (Err((field, problem)), _) => {
                mistakes.add(&node.origin, format!("sink {name:?}: {field}: {problem}"));
            }
            (Ok(_), None) => {}
        }
    }
    offers
}

/// Without it, a tenant could use a sink that its operator meant for others.
fn read_offered_to(name: &str, reader: &mut Reader<'_, '_>) -> Option<SeriesSet> {
    let Some(node) = reader.tree.get("offered_to") else {
        let hint =
            format!("sink {name:?}: expected offered_to: the series that may name it, such as [\"acme.*\"]");
        reader.mistakes.add(&reader.tree.origin, hint);
        return None;
    };
    let mut patterns: Vec<SeriesPattern> = Vec::new();
    for word in read_words(reader, node, &format!("sink {name:?}: offered_to"))? {
        match word.parse() {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => reader.mistakes.add(&node.origin, format!("sink {name:?}: offered_to: {error}")),
        }
    }
    Some(SeriesSet::Patterns(Arc::from(patterns)))
}

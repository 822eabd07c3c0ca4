//! The series of a configuration: each judged by itself, then against the others.

use bates_core::{MachineError, SeriesName, SeriesSpec};
use bates_server::series::Description;
use serde::de::DeserializeOwned;

use super::Mistake;
use super::tree::Node;

/// Where the documents of a series go.
#[derive(Clone, Debug)]
pub(crate) struct SinkOf {
    pub(crate) series: SeriesName,
    pub(crate) sink: bates_sinks::Description,
}

/// Reads every series, and notes every mistake.
pub(super) fn read(node: Option<&Node>, mistakes: &mut Vec<Mistake>) -> (Vec<SeriesSpec>, Vec<SinkOf>) {
    let Some(node) = node else { return Default::default() };
    let Some(entries) = node.entries() else {
        let problem = "series: expected a map of names and descriptions".to_owned();
        mistakes.push(Mistake { origin: node.origin.clone(), problem });
        return Default::default();
    };
    let (mut specs, mut sinks): (Vec<SeriesSpec>, Vec<SinkOf>) = Default::default();
    for (name, node) in entries {
        let sink = node.get("sink").and_then(|sink| sink_of(name, sink, mistakes));
        let Some(spec) = one(name, &node.without("sink"), mistakes) else { continue };
        let spec = SeriesSpec { has_sink: sink.is_some(), ..spec };
        sinks.extend(sink.map(|sink| SinkOf { series: spec.name.clone(), sink }));
        if let Err(error) = specs.iter().try_for_each(|other| spec.check_apart(other)) {
            mistakes.push(of_machine(node, &error));
        }
        specs.push(spec);
    }
    (specs, sinks)
}

/// A sink that is described as one can be. Whether it is there shows when something is delivered.
fn sink_of(name: &str, node: &Node, mistakes: &mut Vec<Mistake>) -> Option<bates_sinks::Description> {
    let described: Result<bates_sinks::Description, Mistake> = deserialized(name, node, "sink: ");
    let described = described.and_then(|description| match description.open() {
        Ok(_) => Ok(description),
        Err(error) => {
            let problem = format!("series {name:?}: sink: {error}");
            Err(Mistake { origin: node.origin.clone(), problem })
        }
    });
    described.map_err(|mistake| mistakes.push(mistake)).ok()
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
    let judged = match description.spec(series.clone()) {
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

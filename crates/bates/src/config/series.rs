//! The series of a configuration: each judged by itself, then against the others.

use bates_core::{MachineError, SeriesName, SeriesSpec};
use bates_server::series::Description;

use super::Mistake;
use super::tree::Node;

/// Reads every series, and notes every mistake.
pub(super) fn read(node: Option<&Node>, mistakes: &mut Vec<Mistake>) -> Vec<SeriesSpec> {
    let Some(node) = node else { return Vec::new() };
    let Some(entries) = node.entries() else {
        let problem = "series: expected a map of names and descriptions".to_owned();
        mistakes.push(Mistake { origin: node.origin.clone(), problem });
        return Vec::new();
    };
    let mut specs: Vec<SeriesSpec> = Vec::new();
    for (name, node) in entries {
        let Some(spec) = one(name, node, mistakes) else { continue };
        if let Err(error) = specs.iter().try_for_each(|other| spec.check_apart(other)) {
            mistakes.push(of_machine(node, &error));
        }
        specs.push(spec);
    }
    specs
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
    let description = description(name, node).map_err(|mistake| mistakes.push(mistake)).ok()?;
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

fn description(name: &str, node: &Node) -> Result<Description, Mistake> {
    serde_path_to_error::deserialize(node.plain()).map_err(|error| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let origin = node.origin_of(path.iter().map(String::as_str)).clone();
        let inner = error.into_inner().to_string();
        let field = if path.is_empty() { String::new() } else { path.join(": ") + ": " };
        Mistake { origin, problem: format!("series {name:?}: {field}{inner}") }
    })
}

fn of_machine(node: &Node, error: &MachineError) -> Mistake {
    Mistake { origin: node.origin_of(error.field()).clone(), problem: error.to_string() }
}

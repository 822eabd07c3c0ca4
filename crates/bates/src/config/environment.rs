//! Values from the environment, which override those of the file. `BATES_HTTP` is `http`; two underscores separate
//! the levels: `BATES_SERIES__DOCUMENT__LIMITS__LEASE_MAX` is `series: document: limits: lease_max`. A dash or dot
//! in the name of a series, token, sink or pool is an underscore in the variable.

use std::collections::BTreeMap;

use bates_pattern::nearest;

use super::tree::{Node, Origin, Value};
use super::{KEYS, Mistakes};
use crate::output;

const PREFIX: &str = "BATES_";

/// Prefixes of variables that other commands read, or that Kubernetes sets for a service called bates.
const OTHER_VARIABLES: [&str; 9] =
    ["CONFIG", "URL", "CA_FILE", "REDIS", "PATTERN_KEY", "TEST_", "PLANTED_", "PORT", "SERVICE_"];

pub(super) fn overlay(tree: &mut Node, mistakes: &mut Mistakes) {
    for (name, value) in std::env::vars().collect::<BTreeMap<_, _>>() {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if OTHER_VARIABLES.iter().any(|other| rest.starts_with(other)) {
            continue;
        }
        let path = key_path(tree, rest);
        if !KEYS.contains(&&*path[0]) {
            let near = nearest(&path[0], KEYS);
            let hint =
                near.map_or(String::new(), |near| format!(": did you mean {PREFIX}{}?", near.to_uppercase()));
            output::print_note(&format!("unknown variable {name}{hint}"));
            continue;
        }
        let origin = Origin::Variable(name);
        match read_value(&path[0], &value, &origin) {
            Ok(node) => *tree.get_or_insert(&path, &origin) = node,
            Err(problem) => mistakes.add(&origin, problem),
        }
    }
}

fn key_path(tree: &Node, name: &str) -> Vec<String> {
    let mut path: Vec<String> = name.split("__").map(str::to_lowercase).collect();
    if let [first, named, ..] = &mut *path
        && ["series", "tokens", "sinks", "pools"].contains(&&**first)
        && let Some(known) = tree.get(first).and_then(Node::entries)
        && let Some((name, _)) = known.iter().find(|(name, _)| name.replace(['-', '.'], "_") == *named)
    {
        named.clone_from(name);
    }
    path
}

/// A value inside a series is YAML, for numbers and lists; all other values are plain text.
fn read_value(first: &str, value: &str, origin: &Origin) -> Result<Node, String> {
    if first != "series" {
        return Ok(Node::text(value, origin.clone()));
    }
    let mut node: Node = serde_saphyr::from_str(value).map_err(|_| "invalid YAML".to_owned())?;
    relocate(&mut node, origin);
    Ok(node)
}

pub(super) fn relocate(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(nodes) => nodes.iter_mut().for_each(|node| relocate(node, origin)),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| relocate(node, origin)),
    }
}

//! The limits on strangers, connections, memory and scopes.

use bates_server::DefenseSettings;

use super::reader::Reader;
use super::tree::{Node, Value};

const MEGABYTE: usize = 1024 * 1024;

pub(super) fn read_defense(reader: &mut Reader<'_, '_>) -> DefenseSettings {
    let default = DefenseSettings::default();
    let mut number = |key: &str, default: u64, min: u64, max: u64| reader.number(key, default, min..=max);
    let rate = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    // Zero stands for the default: no server could run without memory.
    let memory_mb = number("memory_max_mb", 0, 8, 16 * 1024 * 1024);
    let connections_max = number("connections_max", default.connections_max as u64, 1, 1_000_000);
    let per_address = number("connections_per_address_max", 0, 0, 1_000_000);
    let wrong_secrets_max = number("wrong_secrets_max", default.wrong_secrets_max.into(), 1, 1_000_000);
    let stranger_requests_max =
        number("stranger_requests_max", default.stranger_requests_max.into(), 1, 1_000_000);
    DefenseSettings {
        memory_bytes_max: match size(memory_mb) {
            0 => default.memory_bytes_max,
            megabytes => megabytes * MEGABYTE,
        },
        connections_max: size(connections_max),
        connections_per_address_max: is_set(reader.tree, "connections_per_address_max")
            .then(|| size(per_address)),
        wrong_secrets_max: rate(wrong_secrets_max),
        stranger_requests_max: rate(stranger_requests_max),
        ..default
    }
}

pub(super) fn read_scopes_max(reader: &mut Reader<'_, '_>) -> usize {
    let scopes = reader.number("scopes_in_memory_max", 5_000_000, 1_000..=1_000_000_000);
    usize::try_from(scopes).unwrap_or(usize::MAX)
}

fn is_set(tree: &Node, key: &str) -> bool {
    tree.get(key).is_some_and(|node| !matches!(node.value, Value::Scalar(serde_json::Value::Null)))
}

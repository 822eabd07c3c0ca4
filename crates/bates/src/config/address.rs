//! Where the server listens.

use std::fmt;
use std::net::SocketAddr;

use bates_server::Access;

use super::Mistake;
use super::tree::{Node, Value};

/// Where to listen, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    At(SocketAddr),
    Off,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Off => f.write_str("off"),
        }
    }
}

/// A text at a key of the configuration; `None` if there is none, or a mistake.
pub(super) fn text<'t>(tree: &'t Node, key: &str, mistakes: &mut Vec<Mistake>) -> Option<&'t str> {
    let node = tree.get(key)?;
    match &node.value {
        Value::Scalar(serde_json::Value::String(text)) => Some(text),
        // YAML reads `off` and a bare number as other than texts.
        Value::Scalar(serde_json::Value::Bool(false)) => Some("off"),
        Value::Scalar(serde_json::Value::Null) => None,
        _ => {
            let problem = format!("{key} is a text: put it between quotation marks");
            mistakes.push(Mistake { origin: node.origin.clone(), problem });
            None
        }
    }
}

pub(super) fn wrong(tree: &Node, key: &str, problem: String, mistakes: &mut Vec<Mistake>) {
    mistakes.push(Mistake { origin: tree.origin_of([key]).clone(), problem });
}

/// Whether clients of the OpenG2P contract need no secret.
pub(super) fn is_open(tree: &Node, mistakes: &mut Vec<Mistake>) -> bool {
    let Some(node) = tree.get("openg2p_open") else { return false };
    match &node.value {
        Value::Scalar(serde_json::Value::Bool(open)) => *open,
        Value::Scalar(serde_json::Value::String(open)) if open == "true" || open == "false" => open == "true",
        _ => {
            wrong(tree, "openg2p_open", "openg2p_open is true or false".to_owned(), mistakes);
            false
        }
    }
}

/// Anything but loopback without a secret would let anybody take numbers.
pub(super) fn listen(
    tree: &Node,
    key: &str,
    default: &str,
    access: Option<&Access>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Address> {
    let given = text(tree, key, mistakes).unwrap_or(default);
    if given == "off" {
        return Some(Address::Off);
    }
    let Ok(address) = given.parse::<SocketAddr>() else {
        let problem = format!("{key}: {given:?} is no address: expected one such as {default}, or off");
        wrong(tree, key, problem, mistakes);
        return None;
    };
    if !address.ip().is_loopback() && access.is_some_and(Access::is_open) {
        let problem = format!(
            "{key}: anybody could take numbers at {address}. Set a secret (BATES_SECRET), or listen on loopback"
        );
        wrong(tree, key, problem, mistakes);
    }
    Some(Address::At(address))
}

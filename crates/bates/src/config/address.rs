//! Single values of a configuration: texts, numbers, and where the server listens.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bates_server::Access;
use serde_json::Value as Json;

use super::Mistakes;
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
pub(super) fn text<'t>(tree: &'t Node, key: &str, mistakes: &mut Mistakes) -> Option<&'t str> {
    match &tree.get(key)?.value {
        Value::Scalar(Json::String(text)) => Some(text),
        // YAML reads `off` and a bare number as other than texts.
        Value::Scalar(Json::Bool(false)) => Some("off"),
        Value::Scalar(Json::Null) => None,
        _ => {
            mistakes.at(tree, key, format!("{key} is a text: put it between quotation marks"));
            None
        }
    }
}

/// A whole number within bounds; the environment gives it as a text.
pub(super) fn number(
    tree: &Node,
    key: &str,
    default: u64,
    bounds: RangeInclusive<u64>,
    mistakes: &mut Mistakes,
) -> u64 {
    let given = match tree.get(key).map(|node| &node.value) {
        None | Some(Value::Scalar(Json::Null)) => return default,
        Some(Value::Scalar(Json::Number(number))) => number.as_u64(),
        Some(Value::Scalar(Json::String(text))) => text.parse().ok(),
        Some(_) => None,
    };
    given.filter(|number| bounds.contains(number)).unwrap_or_else(|| {
        let (least, most) = bounds.into_inner();
        mistakes.at(tree, key, format!("{key} is a whole number from {least} to {most}"));
        default
    })
}

/// Whether clients of the OpenG2P contract need no secret.
pub(super) fn is_open(tree: &Node, mistakes: &mut Mistakes) -> bool {
    let Some(node) = tree.get("openg2p_open") else { return false };
    match &node.value {
        Value::Scalar(Json::Bool(open)) => *open,
        Value::Scalar(Json::String(open)) if open == "true" || open == "false" => open == "true",
        _ => {
            mistakes.at(tree, "openg2p_open", "openg2p_open is true or false");
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
    mistakes: &mut Mistakes,
) -> Option<Address> {
    let given = text(tree, key, mistakes).unwrap_or(default);
    if given == "off" {
        return Some(Address::Off);
    }
    let Ok(address) = given.parse::<SocketAddr>() else {
        let problem = format!("{key}: {given:?} is no address: expected one such as {default}, or off");
        mistakes.at(tree, key, problem);
        return None;
    };
    if !address.ip().is_loopback() && access.is_some_and(Access::is_open) {
        let problem = format!(
            "{key}: anybody could take numbers at {address}. Set a secret (BATES_SECRET), or listen on loopback"
        );
        mistakes.at(tree, key, problem);
    }
    Some(Address::At(address))
}

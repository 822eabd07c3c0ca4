//! Single values of a configuration: texts, numbers, secrets in files, and where the server listens.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bates_server::Access;
use serde_json::Value as Json;

use super::Mistakes;
use super::tree::{Node, Value};

pub(crate) fn address_or_off(address: Option<SocketAddr>) -> String {
    address.map_or("off".to_owned(), |address| address.to_string())
}

/// A mistaken value is recorded, and read as if it were missing.
pub(super) struct Reader<'t, 'm> {
    pub(super) tree: &'t Node,
    pub(super) mistakes: &'m mut Mistakes,
}

impl<'t> Reader<'t, '_> {
    pub(super) fn wrong(&mut self, key: &str, problem: impl Into<String>) {
        self.mistakes.at(self.tree, key, problem);
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'t str> {
        match &self.tree.get(key)?.value {
            Value::Scalar(Json::String(text)) => Some(text),
            // YAML reads `off` and a bare number as other than texts.
            Value::Scalar(Json::Bool(false)) => Some("off"),
            Value::Scalar(Json::Null) => None,
            _ => {
                self.wrong(key, format!("{key} is a text: put it between quotation marks"));
                None
            }
        }
    }

    /// A whole number within bounds; the environment gives it as a text.
    pub(super) fn number(&mut self, key: &str, default: u64, bounds: RangeInclusive<u64>) -> u64 {
        let given = match self.tree.get(key).map(|node| &node.value) {
            None | Some(Value::Scalar(Json::Null)) => return default,
            Some(Value::Scalar(Json::Number(number))) => number.as_u64(),
            Some(Value::Scalar(Json::String(text))) => text.parse().ok(),
            Some(_) => None,
        };
        given.filter(|number| bounds.contains(number)).unwrap_or_else(|| {
            let (least, most) = bounds.into_inner();
            self.wrong(key, format!("{key} is a whole number from {least} to {most}"));
            default
        })
    }

    pub(super) fn is_true(&mut self, key: &str) -> bool {
        match self.tree.get(key).map(|node| &node.value) {
            None => false,
            Some(Value::Scalar(Json::Bool(is_true))) => *is_true,
            Some(Value::Scalar(Json::String(text))) if text == "true" || text == "false" => text == "true",
            Some(_) => {
                self.wrong(key, format!("{key} is true or false"));
                false
            }
        }
    }

    pub(super) fn secret_in(&mut self, file: &str, key: &str, of: &str) -> Option<String> {
        match std::fs::read_to_string(file) {
            Ok(secret) => Some(secret.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                self.wrong(key, format!("{of}{key}: cannot read {file}: {error}"));
                None
            }
        }
    }

    /// `None` if it is off. Without a secret only loopback is safe: others could take numbers.
    pub(super) fn listen(&mut self, key: &str, default: &str, access: Option<&Access>) -> Option<SocketAddr> {
        let given = self.text(key).unwrap_or(default);
        if given == "off" {
            return None;
        }
        let Ok(address) = given.parse::<SocketAddr>() else {
            let expected = format!("expected one such as {default}, or off");
            self.wrong(key, format!("{key}: {given:?} is no address: {expected}"));
            return None;
        };
        if !address.ip().is_loopback() && access.is_some_and(Access::is_open) {
            let remedy = "Set a secret (BATES_SECRET), or listen on loopback";
            self.wrong(key, format!("{key}: anybody could take numbers at {address}. {remedy}"));
        }
        Some(address)
    }
}

//! Reads single values of a configuration: texts, numbers, secrets in files, and listen addresses.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bates_server::Access;
use serde_json::Value as Json;

use super::Mistakes;
use super::tree::{Node, Value};

pub(crate) fn address_or_off(address: Option<SocketAddr>) -> String {
    address.map_or("off".to_owned(), |address| address.to_string())
}

/// A wrong value is recorded as a mistake, and read as if it were missing.
pub(super) struct Reader<'t, 'm> {
    pub(super) tree: &'t Node,
    pub(super) mistakes: &'m mut Mistakes,
}

impl<'t> Reader<'t, '_> {
    pub(super) fn add_mistake(&mut self, key: &str, problem: impl Into<String>) {
        self.mistakes.add_at(self.tree, key, problem);
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'t str> {
        match &self.tree.get(key)?.value {
            Value::Scalar(Json::String(text)) => Some(text),
            // YAML reads `off` as false.
            Value::Scalar(Json::Bool(false)) => Some("off"),
            Value::Scalar(Json::Null) => None,
            _ => {
                self.add_mistake(key, format!("{key} must be text: put it in quotation marks"));
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
            let (min, max) = bounds.into_inner();
            self.add_mistake(key, format!("{key} must be a whole number from {min} to {max}"));
            default
        })
    }

    pub(super) fn flag(&mut self, key: &str) -> bool {
        match self.tree.get(key).map(|node| &node.value) {
            None => false,
            Some(Value::Scalar(Json::Bool(is_true))) => *is_true,
            Some(Value::Scalar(Json::String(text))) if text == "true" || text == "false" => text == "true",
            Some(_) => {
                self.add_mistake(key, format!("{key} must be true or false"));
                false
            }
        }
    }

    pub(super) fn read_secret_file(&mut self, file: &str, key: &str, of: &str) -> Option<String> {
        match std::fs::read_to_string(file) {
            Ok(secret) => Some(secret.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                self.add_mistake(key, format!("{of}{key}: cannot read {file}: {error}"));
                None
            }
        }
    }

    /// `None` if it is off. Without a secret only loopback is accepted, because any client could take numbers.
    pub(super) fn listen_address(
        &mut self,
        key: &str,
        default: &str,
        access: Option<&Access>,
    ) -> Option<SocketAddr> {
        let given = self.text(key).unwrap_or(default);
        if given == "off" {
            return None;
        }
        // Only loopback, whatever the name resolves to.
        let on_loopback = given.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let Ok(address) = on_loopback.as_deref().unwrap_or(given).parse::<SocketAddr>() else {
            let expected = format!("expected one such as {default}, or off");
            self.add_mistake(key, format!("{key}: invalid address {given:?}: {expected}"));
            return None;
        };
        if !address.ip().is_loopback() && access.is_some_and(Access::is_open) {
            let remedy = "set a secret (BATES_SECRET), or listen on loopback";
            self.add_mistake(key, format!("{key}: any client could take numbers at {address}: {remedy}"));
        }
        Some(address)
    }
}

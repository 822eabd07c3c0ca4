//! Which series are ID types, and what their names and identifiers look like in a path.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use bates_core::{Code, Entry, Store};
use bates_pattern::Check;

use super::envelope::{Failure, UNKNOWN_TYPE};
use crate::http::routes::Context;

/// The digits of an identifier, if the series is an ID type: shuffled, without parameters, and only digits with a
/// Verhoeff check digit.
pub fn length(entry: &Entry) -> Option<usize> {
    let (digits, check) = entry.series().pattern().plain_digits()?;
    let is_one = entry.series().pattern().is_shuffled()
        && check == Check::Verhoeff
        && entry.parameters().next().is_none()
        && is_name(entry.series().name().as_str());
    is_one.then_some(digits)
}

pub(super) fn all<S: Store>(context: &Context<S>) -> BTreeMap<String, (Arc<Entry>, usize)> {
    let registry = context.machine.registry();
    let of = |entry: &Arc<Entry>| Some((entry.series().name().to_string(), (entry.clone(), length(entry)?)));
    registry.entries().filter_map(of).collect()
}

pub(super) async fn named<S: Store>(context: &Context<S>, name: &str) -> Result<Arc<Entry>, Failure> {
    let found = context.machine.named_anywhere(name).await;
    let unknown = || Failure::new(UNKNOWN_TYPE, format!("there is no ID type {name:?}"));
    found.filter(|entry| length(entry).is_some()).ok_or_else(unknown)
}

/// `^[a-z][a-z0-9_]{1,63}$`
fn is_name(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// `^\d{1,32}$`
fn is_id(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) struct Named {
    pub(super) id_type: String,
    /// Empty where the path has none.
    pub(super) id: String,
}

impl<C: Send + Sync> FromRequestParts<C> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, context: &C) -> Result<Self, Failure> {
        const NAME_RULE: &str = "an ID type is a lower-case letter and 1 to 63 of a-z, 0-9 and _";
        let refused = |what: &str| Failure::of(Code::BAD_NAME, what);
        let params = RawPathParams::from_request_parts(parts, context).await;
        let params = params.map_err(|_| refused("a part of the path is not UTF-8"))?;
        let mut named = Self { id_type: String::new(), id: String::new() };
        for (name, value) in &params {
            match name {
                "id_type" if is_name(value) => value.clone_into(&mut named.id_type),
                "id" if is_id(value) => value.clone_into(&mut named.id),
                "id_type" => return Err(refused(NAME_RULE)),
                _ => return Err(refused("an ID is 1 to 32 digits")),
            }
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_are_those_of_the_contract() {
        for name in ["ab", "farmer_id", "a1", &"a".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a", "1a", "_a", "A1", "a-b", "a b", "é1", "ab\n", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
        for id in ["0", "12345", &"9".repeat(32)] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", "12.34", "12 34", "abc", "-1", "१२", &"9".repeat(33)] {
            assert!(!is_id(id), "{id}");
        }
    }
}

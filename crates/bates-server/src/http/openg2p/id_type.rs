//! ID types: which series are ID types, and the syntax of their names and IDs in a path.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use bates_core::{ErrorCode, SeriesEntry, Store};
use bates_pattern::Check;

use super::envelope::{Failure, UNKNOWN_TYPE};
use crate::http::permit::Permit;
use crate::http::routes::Context;

/// How many digits an ID has, if the series is an ID type: shuffled, without parameters, and only digits with a Verhoeff
/// check digit.
pub fn id_length(entry: &SeriesEntry) -> Option<usize> {
    let (digits, check) = entry.series().pattern().plain_digits()?;
    let is_id_type = entry.series().pattern().is_shuffled()
        && check == Check::Verhoeff
        && entry.parameters().next().is_none()
        && is_id_type_name(entry.series().name().as_str());
    is_id_type.then_some(digits)
}

/// Every ID type by its name, with the length of its IDs.
pub(super) fn list<S: Store>(context: &Context<S>) -> BTreeMap<String, (Arc<SeriesEntry>, usize)> {
    let registry = context.machine.registry();
    let id_type = |entry: &Arc<SeriesEntry>| {
        Some((entry.series().name().to_string(), (entry.clone(), id_length(entry)?)))
    };
    registry.entries().filter_map(id_type).collect()
}

pub(super) async fn find<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    name: &str,
) -> Result<Arc<SeriesEntry>, Failure> {
    let unknown = || Failure::new(UNKNOWN_TYPE, format!("there is no ID type {name:?}"));
    // Before the look-up: its time would tell whether the series of another caller exists.
    if !name.parse().is_ok_and(|series| permit.sees_all_of(&series)) {
        return Err(unknown());
    }
    let entry = context.machine.series_or_sync(name).await;
    entry.filter(|entry| id_length(entry).is_some()).ok_or_else(unknown)
}

/// `^[a-z][a-z0-9_]{1,63}$`
pub fn is_id_type_name(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// `^\d{1,32}$`
fn is_id(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The ID type and the ID in a path.
pub(super) struct IdPath {
    pub(super) id_type: String,
    /// Empty if the path has no ID.
    pub(super) id: String,
}

impl<C: Send + Sync> FromRequestParts<C> for IdPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, context: &C) -> Result<Self, Failure> {
        const NAME_RULE: &str =
            "invalid ID type: expected a lower-case letter followed by 1 to 63 characters of a-z, 0-9 and _";
        let bad_name = |message: &str| Failure::with_bates_code(ErrorCode::BAD_NAME, message);
        let params = RawPathParams::from_request_parts(parts, context).await;
        let params = params.map_err(|_| bad_name("a segment of the path is not UTF-8"))?;
        let mut path = Self { id_type: String::new(), id: String::new() };
        for (name, value) in &params {
            match name {
                "id_type" if is_id_type_name(value) => value.clone_into(&mut path.id_type),
                "id" if is_id(value) => value.clone_into(&mut path.id),
                "id_type" => return Err(bad_name(NAME_RULE)),
                _ => return Err(bad_name("invalid ID: expected 1 to 32 digits")),
            }
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_have_the_syntax_of_the_contract() {
        for name in ["ab", "farmer_id", "a1", &"a".repeat(64)] {
            assert!(is_id_type_name(name), "{name}");
        }
        for name in ["", "a", "1a", "_a", "A1", "a-b", "a b", "é1", "ab\n", &"a".repeat(65)] {
            assert!(!is_id_type_name(name), "{name}");
        }
        for id in ["0", "12345", &"9".repeat(32)] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", "12.34", "12 34", "abc", "-1", "१२", &"9".repeat(33)] {
            assert!(!is_id(id), "{id}");
        }
    }
}

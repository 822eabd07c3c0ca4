//! The series and scopes of a list as conditions.

use bates_core::{ScopeFilter, ScopeKey, SeriesPattern, SeriesSet};

/// Patterns for `GLOB`, as a JSON array for `json_each`. A name needs no escape in either.
pub(crate) fn glob_patterns(set: &SeriesSet) -> String {
    let patterns =
        set.patterns().map(|patterns| patterns.iter().map(SeriesPattern::as_str).collect::<Vec<_>>());
    json_array(patterns.unwrap_or_else(|| vec!["*"]).into_iter())
}

/// The key of the only scope, and the words that the key of a scope must have, as a JSON array for `json_each`.
pub(crate) fn scope_condition(filter: Option<&ScopeFilter>) -> (Option<&str>, String) {
    let exact = filter.and_then(ScopeFilter::exact).map(ScopeKey::as_str);
    (exact, json_array(filter.into_iter().flat_map(ScopeFilter::words)))
}

/// The texts hold only visible ASCII.
fn json_array<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted = texts.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("[{}]", quoted.collect::<Vec<_>>().join(","))
}

//! The series and scopes of a list as conditions: `series LIKE ANY ($n)`, `string_to_array(scope, ' ') @> $n`.

use bates_core::{ScopeFilter, ScopeKey, SeriesPattern, SeriesSet};

/// Patterns for `LIKE`. A name holds no `%` and no backslash.
pub(crate) fn like_patterns(set: &SeriesSet) -> Vec<String> {
    let pattern = |pattern: &SeriesPattern| pattern.as_str().replace('_', "\\_").replace('*', "%");
    set.patterns().map_or_else(|| vec!["%".to_owned()], |patterns| patterns.iter().map(pattern).collect())
}

/// The key of the only scope, and the words that the key of a scope must have.
pub(crate) fn scope_condition(filter: Option<&ScopeFilter>) -> (Option<&str>, Vec<&str>) {
    let exact = filter.and_then(ScopeFilter::exact).map(ScopeKey::as_str);
    (exact, filter.into_iter().flat_map(ScopeFilter::words).collect())
}

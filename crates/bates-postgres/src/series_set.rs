//! A set of series as a condition: `series LIKE ANY ($n)`.

use bates_core::{SeriesPattern, SeriesSet};

/// Patterns for `LIKE`. A name holds no `%` and no backslash.
pub(crate) fn like_patterns(set: &SeriesSet) -> Vec<String> {
    let pattern = |pattern: &SeriesPattern| pattern.as_str().replace('_', "\\_").replace('*', "%");
    set.patterns().map_or_else(|| vec!["%".to_owned()], |patterns| patterns.iter().map(pattern).collect())
}

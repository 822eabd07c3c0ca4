//! A set of series as a condition on the name of a series.

use bates_core::{SeriesPattern, SeriesSet};

/// Patterns for `GLOB`, as a JSON array for `json_each`. A name needs no escape in either.
pub(crate) fn glob_patterns(set: &SeriesSet) -> String {
    let patterns =
        set.patterns().map(|patterns| patterns.iter().map(SeriesPattern::as_str).collect::<Vec<_>>());
    let patterns = patterns.unwrap_or_else(|| vec!["*"]);
    format!("[{}]", patterns.iter().map(|pattern| format!("\"{pattern}\"")).collect::<Vec<_>>().join(","))
}

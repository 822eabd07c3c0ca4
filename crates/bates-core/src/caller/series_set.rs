//! Which series a caller's rights cover: names, and names below a prefix.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::series::SeriesName;

/// The name of a series, or `prefix.*` for every name that begins with `prefix.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesPattern(Box<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no series: expected a name such as document, or acme.* for all names that begin with acme."
)]
pub struct SeriesPatternError(Box<str>);

impl SeriesPattern {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[inline]
    fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => *self.0 == *name,
        }
    }
}

impl FromStr for SeriesPattern {
    type Err = SeriesPatternError;

    fn from_str(text: &str) -> Result<Self, SeriesPatternError> {
        // Only whole parts: `acme*` would also cover the series of a tenant `acme2`.
        let name = text.strip_suffix(".*").unwrap_or(text);
        match name.parse::<SeriesName>() {
            Ok(_) => Ok(Self(text.into())),
            Err(_) => Err(SeriesPatternError(text.chars().take(80).collect::<String>().into())),
        }
    }
}

impl fmt::Display for SeriesPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All series, or those that one of some patterns covers. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SeriesSet {
    #[default]
    All,
    Patterns(Arc<[SeriesPattern]>),
}

impl SeriesSet {
    #[inline]
    pub fn contains(&self, name: &SeriesName) -> bool {
        match self {
            Self::All => true,
            Self::Patterns(patterns) => patterns.iter().any(|pattern| pattern.matches(name.as_str())),
        }
    }

    /// Whether this set has every series of another.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Patterns(_), Self::All) => false,
            (Self::Patterns(own), Self::Patterns(others)) => {
                // The dot ends the prefix: a name or a longer prefix begins with it.
                others.iter().all(|other| own.iter().any(|own| own == other || own.matches(&other.0)))
            }
        }
    }

    /// `None` for all series.
    pub fn patterns(&self) -> Option<&[SeriesPattern]> {
        match self {
            Self::All => None,
            Self::Patterns(patterns) => Some(patterns),
        }
    }

    /// What the Redis keys of a caller begin with that is limited to this set: `acme:` for the pattern `acme.*`. Nothing for a
    /// name: `document` and `document.*` may belong to two callers.
    pub(super) fn key_prefixes(&self) -> impl Iterator<Item = String> {
        let patterns = self.patterns().unwrap_or_default().iter();
        patterns.filter_map(|pattern| Some(format!("{}:", pattern.0.strip_suffix(".*")?)))
    }

    /// Whether a caller that is limited to this set may define a key that begins so.
    pub(super) fn owns_key(&self, key: &str) -> bool {
        let begins = |pattern: &SeriesPattern| {
            let rest = pattern.0.strip_suffix(".*").and_then(|prefix| key.strip_prefix(prefix));
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        self.patterns().is_none_or(|patterns| patterns.iter().any(begins))
    }
}

//! The identity of a scope, and of its cursor.

mod filter;
mod key_template;

use std::fmt;
use std::sync::Arc;

use bates_pattern::{Date, Period, ScopeError as PatternError};

use crate::code::ErrorCode;
use crate::series::SeriesName;
use crate::store::StoreResult;

pub use filter::ScopeFilter;
pub(crate) use key_template::is_value;
pub use key_template::{KeyTemplate, KeyTemplateError};

/// Sixteen parameters of 64 bytes, their names, and a period.
const BYTES_MAX: usize = 2_200;

/// The identity of a scope within its series: every parameter, shown in the pattern or not, by name, and the period.
/// `project=PROJ type=9012 @2026`. Cheap to clone.
///
/// Stores keep it, so its form never changes: another spelling would be another cursor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeKey(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeKeyError {
    #[error("parameter {0:?} cannot be part of a scope: its name or value is empty or not visible ASCII")]
    Ambiguous(Box<str>),
    #[error("parameter {0:?} is given twice")]
    Twice(Box<str>),
    #[error("the scope has {0} bytes; the limit is 2200")]
    TooLong(usize),
}

impl ScopeKey {
    /// The order of the parameters does not matter.
    pub fn new<'a>(
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
        period: Option<Period>,
    ) -> Result<Self, ScopeKeyError> {
        Self::named(parameters, period.map(|period| period.to_string()).as_deref())
    }

    pub fn named<'a>(
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
        period: Option<&str>,
    ) -> Result<Self, ScopeKeyError> {
        let mut sorted: Vec<(&str, &str)> = parameters.into_iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ScopeKeyError::Twice(pair[0].0.into()));
        }
        let mut key = String::new();
        for (name, value) in sorted {
            // Invariant: no name holds `=` or a space and no value a space, so the key can be read in one way only.
            let visible = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
            if !visible(name) || !visible(value) || name.contains('=') || name.starts_with('@') {
                return Err(ScopeKeyError::Ambiguous(name.chars().take(64).collect::<String>().into()));
            }
            let space = if key.is_empty() { "" } else { " " };
            key.extend([space, name, "=", value]);
        }
        if let Some(period) = period {
            let space = if key.is_empty() { "" } else { " " };
            key.extend([space, "@", period]);
        }
        if key.len() > BYTES_MAX { Err(ScopeKeyError::TooLong(key.len())) } else { Ok(Self(key.into())) }
    }

    pub fn from_store(text: &str) -> Self {
        Self(text.into())
    }

    /// The parameters by name, and the name of the period.
    pub fn parts(&self) -> (impl Iterator<Item = (&str, &str)>, Option<&str>) {
        // No value holds a space and no name begins with @, so only the last word can be a period.
        let period = self.0.rsplit(' ').next().and_then(|word| word.strip_prefix('@'));
        (self.0.split(' ').filter_map(|word| word.split_once('=')), period)
    }

    /// Empty for a series with one scope.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A series and one of its scopes. Each has a cursor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId {
    pub series: SeriesName,
    pub scope: ScopeKey,
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope.as_str() {
            "" => write!(f, "series {:?}", self.series.as_str()),
            scope => write!(f, "series {:?} in scope {scope}", self.series.as_str()),
        }
    }
}

/// All parameters of the series, and the business date where the series has one; by default today's.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopeParams<'a> {
    pub parameters: &'a [(&'a str, &'a str)],
    pub date: Option<Date>,
}

impl<'a, P: AsRef<[(&'a str, &'a str)]> + ?Sized> From<&'a P> for ScopeParams<'a> {
    fn from(parameters: &'a P) -> Self {
        Self { parameters: parameters.as_ref(), date: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    Key(#[from] ScopeKeyError),
    #[error("the scope has the parameters {given:?}; it needs exactly {expected:?}")]
    Parameters { given: Box<str>, expected: Box<str> },
}

impl ScopeError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Pattern(PatternError::Year { .. } | PatternError::FiscalYear { .. }) => ErrorCode::BAD_DATE,
            _ => ErrorCode::BAD_SCOPE,
        }
    }
}

/// Reads rows of scopes from a store, page by page.
pub(crate) async fn each_page<T, F: Future<Output = StoreResult<Vec<(ScopeKey, T)>>>>(
    read: impl Fn(Option<ScopeKey>) -> F,
    mut each: impl FnMut(ScopeKey, T),
) -> StoreResult<()> {
    let mut after = None;
    loop {
        let page = read(after).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for (scope, found) in page {
            each(scope, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_depend_on_the_order_of_parameters() {
        let one = ScopeKey::new([("type", "9012"), ("project", "PROJ")], None).unwrap();
        let other = ScopeKey::new([("project", "PROJ"), ("type", "9012")], None).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.as_str(), "project=PROJ type=9012");
        assert_eq!(ScopeKey::new([], None).unwrap().as_str(), "");
    }

    #[test]
    fn a_key_is_split_into_its_parameters_and_period() {
        for (text, parameters, period) in [
            ("", vec![], None),
            ("a=b=c d=@e", vec![("a", "b=c"), ("d", "@e")], None),
            ("a=b @2026", vec![("a", "b")], Some("2026")),
            ("@2026-27", vec![], Some("2026-27")),
        ] {
            let key = ScopeKey::from_store(text);
            let (found, found_period) = key.parts();
            assert_eq!((found.collect::<Vec<_>>(), found_period), (parameters, period), "{text}");
        }
    }

    #[test]
    fn no_two_scopes_have_one_key() {
        for pair in
            [("a", "b c=d"), ("a b", "c"), ("a=b", "c"), ("@a", "c"), ("a", ""), ("", "b"), ("a", "é")]
        {
            assert!(ScopeKey::new([pair], None).is_err(), "{pair:?}");
        }
        assert!(ScopeKey::new([("a", "b=c")], None).is_ok(), "the first = ends the name");
        assert!(matches!(ScopeKey::new([("a", "1"), ("a", "2")], None), Err(ScopeKeyError::Twice(_))));
    }
}

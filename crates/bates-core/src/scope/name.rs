//! A scope as callers name it.

use bates_pattern::Date;

use super::ScopeKeyError;
use crate::code::Code;

/// A scope as a caller names it: all parameters of the series, and the business date where the series has
/// one; without it, today's.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopeName<'a> {
    /// Names and values, in any order.
    pub parameters: &'a [(&'a str, &'a str)],
    /// The business date.
    pub date: Option<Date>,
}

impl<'a, const N: usize> From<&'a [(&'a str, &'a str); N]> for ScopeName<'a> {
    fn from(parameters: &'a [(&'a str, &'a str); N]) -> Self {
        Self { parameters, date: None }
    }
}

impl<'a> From<&'a [(&'a str, &'a str)]> for ScopeName<'a> {
    fn from(parameters: &'a [(&'a str, &'a str)]) -> Self {
        Self { parameters, date: None }
    }
}

/// A scope that the series cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeRefused {
    /// The pattern refuses a value.
    #[error(transparent)]
    Pattern(#[from] bates_pattern::ScopeError),
    /// The values make no key.
    #[error(transparent)]
    Key(#[from] ScopeKeyError),
    /// Too few parameters, too many, or others.
    #[error("the scope has the parameters {given:?}; it needs exactly {expected:?}")]
    Parameters {
        /// The names that were given.
        given: Box<str>,
        /// The names that a scope of the series has.
        expected: Box<str>,
    },
}

impl ScopeRefused {
    /// The stable code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::Pattern(bates_pattern::ScopeError::Year { .. }) => Code::BAD_DATE,
            _ => Code::BAD_SCOPE,
        }
    }
}

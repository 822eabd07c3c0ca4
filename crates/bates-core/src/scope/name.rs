//! A scope as callers name it.

use bates_pattern::Date;

use super::ScopeKeyError;
use crate::code::Code;

/// All parameters of the series, and the business date where the series has one; by default today's.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopeName<'a> {
    pub parameters: &'a [(&'a str, &'a str)],
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeRefused {
    #[error(transparent)]
    Pattern(#[from] bates_pattern::ScopeError),
    #[error(transparent)]
    Key(#[from] ScopeKeyError),
    #[error("the scope has the parameters {given:?}; it needs exactly {expected:?}")]
    Parameters { given: Box<str>, expected: Box<str> },
}

impl ScopeRefused {
    pub const fn code(&self) -> Code {
        match self {
            Self::Pattern(bates_pattern::ScopeError::Year { .. }) => Code::BAD_DATE,
            _ => Code::BAD_SCOPE,
        }
    }
}

//! What a series promises about its numbers.

use std::fmt;
use std::str::FromStr;

/// What a series promises. It decides how numbers are handed out, never the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Never twice.
    Unique,
    /// Never twice, and a number answered before another was asked for is smaller.
    Ordered,
    /// Ordered, and every position is a document, a reservation or an explained gap.
    Gapless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromiseChange {
    /// What the series must promise now.
    pub from: Promise,
    pub to: Promise,
}

impl Promise {
    pub const ALL: [Self; 3] = [Self::Unique, Self::Ordered, Self::Gapless];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Ordered => "ordered",
            Self::Gapless => "gapless",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no promise: expected unique, ordered or gapless")]
pub struct PromiseError(Box<str>);

impl FromStr for Promise {
    type Err = PromiseError;

    fn from_str(text: &str) -> Result<Self, PromiseError> {
        Self::ALL.into_iter().find(|promise| promise.name() == text).ok_or_else(|| PromiseError(text.into()))
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! Why a store could not do what it was asked.

use crate::series::{Definition, Promise};

/// A store that could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It may work again by itself: no room, no connection.
    #[error("the store cannot be written now: {0}")]
    Unavailable(Box<str>),
    /// A write may or may not have reached the disk. Nothing is issued until the store is opened anew.
    #[error("the store issues nothing: {0}")]
    Poisoned(Box<str>),
    /// This process is a fork of the one that opened the store. Nothing was done.
    #[error(
        "the store was opened by the process that this one was forked from: only that process issues numbers of it"
    )]
    Forked,
    /// The runtime in which the store was opened has ended. Nothing is issued until it is opened anew.
    #[error(
        "the Tokio runtime in which the store was opened has ended: open the store again, in a runtime that lives as \
         long as the store"
    )]
    RuntimeEnded,
    /// The series was pinned with another definition.
    #[error(
        "series {series:?} was pinned with {what} {pinned:?} and is now described with {found:?}: numbers could come twice"
    )]
    Pinned {
        /// The series.
        series: Box<str>,
        /// What differs.
        what: Box<str>,
        /// What the store has.
        pinned: Box<str>,
        /// What was asked for.
        found: Box<str>,
    },
    /// The series promises something else than its description says.
    #[error(
        "series {series:?} promises {pinned} and is described as {found}: describe it as {pinned}, or change it with \
         `bates series promise {series} {found}`"
    )]
    PromisePinned {
        /// The series.
        series: Box<str>,
        /// What the store has.
        pinned: Box<str>,
        /// What was asked for.
        found: Box<str>,
    },
    /// The promise of a series was changed, and this process has not followed yet.
    #[error("series {series:?} promises {pinned} now, and this process has not followed yet: try again")]
    PromiseChanged {
        /// The series.
        series: Box<str>,
        /// What it promises now.
        pinned: Promise,
    },
    /// The user's own documents could not be read, which are in no store of ours.
    #[error("{0}")]
    Documents(Box<str>),
    /// The series was never pinned.
    #[error("series {0:?} is not known to the store")]
    UnknownSeries(Box<str>),
}

/// What a store answers, or why it could not.
pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// The refusal of a definition that differs from the pinned one, if it does.
    pub fn of_difference(pinned: &Definition, asked: &Definition) -> Option<Self> {
        let series = asked.series.as_str().into();
        pinned.difference(asked).map(|(what, pinned, found)| match what {
            "promise" => Self::PromisePinned { series, pinned: pinned.into(), found: found.into() },
            _ => Self::Pinned { series, what: what.into(), pinned: pinned.into(), found: found.into() },
        })
    }

    /// Whether the store issues nothing until it is opened anew.
    pub const fn is_poisoned(&self) -> bool {
        matches!(self, Self::Poisoned(_) | Self::Forked | Self::RuntimeEnded)
    }
}

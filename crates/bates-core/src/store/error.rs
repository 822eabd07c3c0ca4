//! Why a store failed or refused a call.

use crate::series::{Definition, Promise};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store may recover by itself: no room, no connection.
    #[error("the store cannot be written now: {0}")]
    Unavailable(Box<str>),
    /// A write may or may not have reached the disk. The store issues nothing until it is reopened.
    #[error("the store has stopped issuing: {0}")]
    Poisoned(Box<str>),
    /// Nothing was written.
    #[error("this process was forked from the one that opened the store: only that one issues its numbers")]
    Forked,
    /// The store issues nothing until it is reopened.
    #[error(
        "the Tokio runtime in which the store was opened has ended: open the store again, in a runtime that lives as \
         long as the store"
    )]
    RuntimeEnded,
    #[error(
        "series {series:?} was pinned with {what} {pinned:?} and is now described with {found:?}: numbers could come twice"
    )]
    Pinned { series: Box<str>, what: Box<str>, pinned: Box<str>, found: Box<str> },
    #[error(
        "series {series:?} promises {pinned} and is described as {found}: describe it as {pinned}, or change it with \
         `bates series promise {series} {found}`"
    )]
    PromisePinned { series: Box<str>, pinned: Box<str>, found: Box<str> },
    #[error("series {series:?} promises {pinned} now, and this process does not know it yet: try again")]
    PromiseChanged { series: Box<str>, pinned: Promise },
    /// The user's own documents, which lie outside the store, could not be read.
    #[error("{0}")]
    Documents(Box<str>),
    /// An operator has removed the document. The request may have a number, so it gets no other one.
    #[error(
        "what idempotency key {key:?} of series {series:?} stands for is lost: its document was removed from the store"
    )]
    KeyLost { series: Box<str>, key: Box<str> },
    #[error("series {0:?} is not known to the store")]
    UnknownSeries(Box<str>),
}

pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// The refusal of a definition that differs from the pinned one; `None` if it does not.
    pub fn for_difference(pinned: &Definition, asked: &Definition) -> Option<Self> {
        let series = asked.series.as_str().into();
        pinned.difference(asked).map(|(what, pinned, found)| match what {
            "promise" => Self::PromisePinned { series, pinned: pinned.into(), found: found.into() },
            _ => Self::Pinned { series, what: what.into(), pinned: pinned.into(), found: found.into() },
        })
    }

    /// Whether the store issues nothing until it is reopened.
    pub const fn is_poisoned(&self) -> bool {
        matches!(self, Self::Poisoned(_) | Self::Forked | Self::RuntimeEnded)
    }
}

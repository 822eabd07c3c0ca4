//! The outcome of a filling, or why it failed.

use super::ListRefusal;
use crate::code::ErrorCode;
use crate::ledger::GrantError;
use crate::store::StoreError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FillOutcome {
    Done {
        pushed: u64,
        renewed: bool,
    },
    /// Another filler is filling it, or the scope has no pool.
    Skipped,
}

pub(crate) type FillResult = Result<FillOutcome, FillError>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    #[error("{0}")]
    Server(Box<str>),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no more numbers are left")]
    Exhausted,
    #[error("the series has {0} scopes, its limit")]
    TooManyScopes(u64),
    #[error("{0}")]
    Refused(ListRefusal),
    #[error(
        "key {0:?} already holds a value that Bates did not write: delete it, or give the pool another key"
    )]
    KeyTaken(Box<str>),
    #[error(
        "another installation of Bates fills the list {0:?}, and its numbers are not of this store: give the pool another \
         key or another Redis database"
    )]
    OtherStore(Box<str>),
    #[error(
        "numbers up to position {pushed_to} were pushed into {key:?}, and the cursor stands at {next}: the store was \
         restored to an older state. Nothing more is pushed until the cursor is raised past them with `bates floor`"
    )]
    StoreRewound { key: Box<str>, pushed_to: u64, next: u64 },
    #[error(
        "the list {key:?} is of epoch {epoch}, which this store never began: another installation fills it, or the store \
         was restored. Give the pool another key, or remove the list and {{{key}}}:bates"
    )]
    UnknownEpoch { key: Box<str>, epoch: u64 },
}

impl FillError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Exhausted => ErrorCode::EXHAUSTED,
            Self::TooManyScopes(_) => ErrorCode::TOO_MANY_SCOPES,
            _ => ErrorCode::POOL_UNAVAILABLE,
        }
    }
}

impl From<GrantError> for FillError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Exhausted { .. } => Self::Exhausted,
            GrantError::Store(error) => Self::Store(error),
            GrantError::TooManyScopes(limit) => Self::TooManyScopes(limit),
        }
    }
}

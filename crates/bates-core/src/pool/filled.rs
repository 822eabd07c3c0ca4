//! What comes of a filling.

use super::Refusal;
use crate::code::Code;
use crate::ledger::GrantError;
use crate::store::StoreError;

/// What came of a filling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filled {
    /// So many numbers were pushed, and whether the pool was begun anew for it.
    Done {
        /// Numbers that were pushed.
        pushed: u64,
        /// Whether the pool was begun anew.
        renewed: bool,
    },
    /// Somebody else fills it.
    Elsewhere,
}

/// A pool that was not filled, or not to the end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The server failed.
    #[error("{0}")]
    Server(Box<str>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The scope has no more numbers.
    #[error("no more numbers are left")]
    Exhausted,
    /// The series has as many scopes as it may have.
    #[error("the series has {0} scopes, its limit")]
    TooManyScopes(u64),
    /// The server forgot, or another filler was faster.
    #[error("{0}")]
    Refused(Refusal),
    /// A list that was there before the pool.
    #[error(
        "there is something under {0:?} that Bates did not make: remove it first, or give the pool another key"
    )]
    Foreign(Box<str>),
    /// A list of another store.
    #[error(
        "another installation of Bates fills the list {0:?}, and its numbers are not of this store: give the pool another \
         key or another Redis database"
    )]
    OtherStore(Box<str>),
    /// More was pushed than the store knows of having granted.
    #[error(
        "numbers up to position {pushed_to} were pushed into {key:?}, and the cursor stands at {next}: the store was taken \
         back. Nothing more is pushed until the cursor is raised past them with `bates floor`"
    )]
    TakenBack {
        /// The key of the list.
        key: Box<str>,
        /// The first position past all that were pushed.
        pushed_to: u64,
        /// Where the cursor stands.
        next: u64,
    },
    /// A list of an epoch that the store never began.
    #[error(
        "the list {key:?} is of epoch {epoch}, which this store never began: another installation fills it, or the store \
         was restored. Give the pool another key, or remove the list and {{{key}}}:bates"
    )]
    Newer {
        /// Its key.
        key: Box<str>,
        /// Its epoch.
        epoch: u64,
    },
}

impl FillError {
    /// The stable code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Exhausted => Code::EXHAUSTED,
            Self::TooManyScopes(_) => Code::TOO_MANY_SCOPES,
            _ => Code::POOL_UNAVAILABLE,
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

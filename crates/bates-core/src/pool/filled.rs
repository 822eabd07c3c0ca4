//! What comes of a filling.

use super::Refusal;
use crate::grant::GrantError;
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
    /// The server forgot, or another filler was faster.
    #[error("the pool was begun anew by somebody else, or its server forgot it: {0:?}")]
    Refused(Refusal),
    /// A list that was there before the pool.
    #[error("there is a list under {key:?} that Bates did not make, with {level} elements: remove it first")]
    Foreign {
        /// Its key.
        key: Box<str>,
        /// Its elements.
        level: u64,
    },
}

impl From<GrantError> for FillError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Exhausted { .. } => Self::Exhausted,
            GrantError::Store(error) => Self::Store(error),
            GrantError::TooManyScopes(limit) => Self::Store(StoreError::Unavailable(
                format!("the series has {limit} scopes, its limit").into(),
            )),
        }
    }
}

//! Why no number was issued.

use crate::code::Code;
use crate::ledger::GrantError;
use crate::scope::Place;
use crate::store::StoreError;

/// Nothing was taken, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    #[error("{place} is exhausted at {last}: {left} of {wanted} positions are left")]
    Exhausted { place: Place, last: u64, left: u64, wanted: u64 },
    #[error("{place} has nothing left to grant up to {last}, and other nodes may still hold some of it")]
    HeldElsewhere { place: Place, last: u64, left: u64 },
    #[error("{place} is busy: {waiting} callers wait already, the limit")]
    Busy { place: Place, waiting: usize },
    #[error("{place} would be one scope too many: the limit is {limit}")]
    TooManyScopes { place: Place, limit: u64 },
    /// The series was retired, or changed, during the call.
    #[error("{place} was retired")]
    Retired { place: Place },
    #[error("the numbering machine is stopping")]
    Stopping,
    /// A number may be burned.
    #[error("{place}: {error}")]
    Store { place: Place, error: StoreError },
    /// The numbers were taken and not recorded, so they are burned.
    #[error("{place}: what was taken could not be recorded in the audit, so no number is given: {error}")]
    Unrecorded { place: Place, error: StoreError },
}

impl IssueError {
    pub(crate) fn of_grant(place: &Place, wanted: u64, end: u64, error: GrantError) -> Self {
        let place = place.clone();
        match error {
            GrantError::Exhausted { left, elsewhere: true } => {
                Self::HeldElsewhere { place, last: end - 1, left }
            }
            GrantError::Exhausted { left, .. } => Self::Exhausted { place, last: end - 1, left, wanted },
            GrantError::TooManyScopes(limit) => Self::TooManyScopes { place, limit },
            GrantError::Store(error) => Self::Store { place, error },
        }
    }

    pub(crate) fn of_store(place: &Place) -> impl Fn(StoreError) -> Self {
        |error| Self::Store { place: place.clone(), error }
    }

    /// How many positions are left where there are too few; else 0.
    pub(crate) const fn left(&self) -> u64 {
        match self {
            Self::Exhausted { left, .. } | Self::HeldElsewhere { left, .. } => *left,
            _ => 0,
        }
    }

    /// Whether another description or promise has replaced the series; the call is then repeated on that one.
    pub(crate) const fn is_outdated(&self) -> bool {
        matches!(self, Self::Retired { .. } | Self::Store { error: StoreError::PromiseChanged { .. }, .. })
    }

    pub const fn code(&self) -> Code {
        match self {
            Self::Exhausted { .. } => Code::EXHAUSTED,
            Self::HeldElsewhere { .. } => Code::HELD_ELSEWHERE,
            Self::Busy { .. } => Code::BUSY,
            Self::TooManyScopes { .. } => Code::TOO_MANY_SCOPES,
            Self::Retired { .. } => Code::UNKNOWN_SERIES,
            Self::Stopping => Code::STOPPING,
            Self::Store { error, .. } | Self::Unrecorded { error, .. } => error.code(),
        }
    }
}

impl StoreError {
    pub const fn code(&self) -> Code {
        match self {
            Self::Pinned { .. } | Self::PromisePinned { .. } => Code::SERIES_PINNED,
            Self::KeyLost { .. } => Code::UNKNOWN_DOCUMENT,
            Self::Poisoned(_) | Self::Forked | Self::RuntimeEnded => Code::STORE_POISONED,
            _ => Code::STORE_UNAVAILABLE,
        }
    }
}

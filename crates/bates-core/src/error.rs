//! Why no number was issued.

use crate::code::Code;
use crate::ledger::GrantError;
use crate::scope::Place;
use crate::store::StoreError;

/// Why no number was issued. Names the subject and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// The space has not as many positions left. Nothing was taken.
    #[error("{place} is exhausted at {last}: {left} of {wanted} positions are left")]
    Exhausted {
        /// Where.
        place: Place,
        /// The last position of the space.
        last: u64,
        /// How many are left.
        left: u64,
        /// How many were asked for.
        wanted: u64,
    },
    /// The space has no more to grant, and other nodes may still hold some of it. Nothing was taken.
    #[error("{place} has nothing left to grant up to {last}, and other nodes may still hold some of it")]
    HeldElsewhere {
        /// Where.
        place: Place,
        /// The last position of the space.
        last: u64,
        /// How many are left here: fewer than were asked for.
        left: u64,
    },
    /// Too many callers wait already. Nothing was taken.
    #[error("{place} is busy: {waiting} callers wait already, the limit")]
    Busy {
        /// Where.
        place: Place,
        /// How many wait.
        waiting: usize,
    },
    /// The series may not have another scope. Nothing was taken.
    #[error("{place} would be one scope too many: the limit is {limit}")]
    TooManyScopes {
        /// The scope that was asked for.
        place: Place,
        /// The limit of the series.
        limit: u64,
    },
    /// The series was retired, or changed, while it was asked. Nothing was taken.
    #[error("{place} was retired")]
    Retired {
        /// Where.
        place: Place,
    },
    /// The dispenser is closing. Nothing was taken.
    #[error("the numbering machine is stopping")]
    Stopping,
    /// The store failed. A number may be burned.
    #[error("{place}: {error}")]
    Store {
        /// Where.
        place: Place,
        /// What the store said.
        error: StoreError,
    },
    /// The numbers were taken, and not recorded, so none is given. They are burned.
    #[error("{place}: what was taken could not be recorded in the audit, so no number is given: {error}")]
    Unrecorded {
        /// Where.
        place: Place,
        /// What the store said.
        error: StoreError,
    },
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

    /// What a failure of the store means for a call in a scope.
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

    /// Whether another description, or another promise, has taken the place of the series: the one in its place is asked.
    pub(crate) const fn is_outdated(&self) -> bool {
        matches!(self, Self::Retired { .. } | Self::Store { error: StoreError::PromiseChanged { .. }, .. })
    }

    /// The stable code of the error.
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
    /// The stable code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::Pinned { .. } | Self::PromisePinned { .. } => Code::SERIES_PINNED,
            Self::KeyLost { .. } => Code::UNKNOWN_DOCUMENT,
            Self::Poisoned(_) | Self::Forked | Self::RuntimeEnded => Code::STORE_POISONED,
            _ => Code::STORE_UNAVAILABLE,
        }
    }
}

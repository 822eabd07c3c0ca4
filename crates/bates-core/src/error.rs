//! Why no number was issued.

use crate::code::ErrorCode;
use crate::ledger::GrantError;
use crate::scope::ScopeId;
use crate::store::StoreError;

/// Nothing was taken, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    #[error("{scope_id} is exhausted at {last}: {left} of {wanted} positions are left")]
    Exhausted { scope_id: ScopeId, last: u64, left: u64, wanted: u64 },
    #[error("{scope_id} has nothing left to grant up to {last}, and other nodes may still hold some of it")]
    HeldElsewhere { scope_id: ScopeId, last: u64, left: u64 },
    #[error("{scope_id} is busy: {waiting} callers are waiting, the limit")]
    Busy { scope_id: ScopeId, waiting: usize },
    #[error("{scope_id} would be one scope too many: the limit is {limit}")]
    TooManyScopes { scope_id: ScopeId, limit: u64 },
    #[error(
        "{scope_id} is not in memory, which has as many scopes as it may: try again once idle scopes have left it, \
         after five minutes at most, or raise `scopes_in_memory_max`"
    )]
    MemoryFull { scope_id: ScopeId },
    /// The series was retired, or changed, during the call.
    #[error("{scope_id} was retired")]
    Retired { scope_id: ScopeId },
    #[error("the numbering machine is stopping")]
    Stopping,
    /// A number may be burned.
    #[error("{scope_id}: {error}")]
    Store { scope_id: ScopeId, error: StoreError },
    /// The numbers were taken and not recorded, so they are burned.
    #[error("{scope_id}: the numbers could not be recorded in the audit, so none is given: {error}")]
    Unrecorded { scope_id: ScopeId, error: StoreError },
}

impl IssueError {
    pub(crate) fn from_grant(scope_id: &ScopeId, wanted: u64, end: u64, error: GrantError) -> Self {
        let (scope_id, last) = (scope_id.clone(), end - 1);
        match error {
            GrantError::Exhausted { left, held_elsewhere: true } => {
                Self::HeldElsewhere { scope_id, last, left }
            }
            GrantError::Exhausted { left, .. } => Self::Exhausted { scope_id, last, left, wanted },
            GrantError::TooManyScopes(limit) => Self::TooManyScopes { scope_id, limit },
            GrantError::Store(error) => Self::Store { scope_id, error },
        }
    }

    pub(crate) fn from_store(scope_id: &ScopeId) -> impl Fn(StoreError) -> Self {
        |error| Self::Store { scope_id: scope_id.clone(), error }
    }

    /// How many positions are left where there are too few; else 0.
    pub(crate) const fn left(&self) -> u64 {
        match self {
            Self::Exhausted { left, .. } | Self::HeldElsewhere { left, .. } => *left,
            _ => 0,
        }
    }

    /// Whether another description or promise has replaced the series. A take is then repeated; a document fails.
    pub(crate) const fn is_outdated(&self) -> bool {
        matches!(self, Self::Retired { .. } | Self::Store { error: StoreError::PromiseChanged { .. }, .. })
    }

    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Exhausted { .. } => ErrorCode::EXHAUSTED,
            Self::HeldElsewhere { .. } => ErrorCode::HELD_ELSEWHERE,
            Self::Busy { .. } => ErrorCode::BUSY,
            Self::TooManyScopes { .. } => ErrorCode::TOO_MANY_SCOPES,
            Self::MemoryFull { .. } => ErrorCode::OVERLOADED,
            Self::Retired { .. } => ErrorCode::UNKNOWN_SERIES,
            Self::Stopping => ErrorCode::STOPPING,
            Self::Store { error, .. } | Self::Unrecorded { error, .. } => error.code(),
        }
    }
}

impl StoreError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Pinned { .. } | Self::PromisePinned { .. } => ErrorCode::SERIES_PINNED,
            Self::KeyLost { .. } => ErrorCode::UNKNOWN_DOCUMENT,
            Self::Poisoned(_) | Self::Forked | Self::RuntimeEnded => ErrorCode::STORE_POISONED,
            _ => ErrorCode::STORE_UNAVAILABLE,
        }
    }
}

//! The error of every call of the library, with the codes that a server answers.

use bates_core::{Document, DocumentError, EndLeaseError, ErrorCode, IssueError, LeaseError};
use bates_core::{MachineError, NextError, StoreError};
use bates_sqlite::OpenError;
use uuid::Uuid;

pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The description of a series is invalid.
    #[error("series {series:?}: {field}: {problem}")]
    BadSeries {
        /// The series.
        series: Box<str>,
        /// The part of the description.
        field: &'static str,
        /// What is wrong with it.
        problem: Box<str>,
    },
    /// A series could not be opened.
    #[error(transparent)]
    Series(#[from] MachineError),
    /// The folder was not opened with a series of this name.
    #[error("unknown series {0:?}")]
    UnknownSeries(Box<str>),
    /// No number was issued.
    #[error(transparent)]
    Next(#[from] NextError),
    /// No lease was granted.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A lease could not be ended.
    #[error(transparent)]
    EndLease(#[from] EndLeaseError),
    /// A document was not numbered, or no number reserved.
    #[error(transparent)]
    Assign(#[from] DocumentError),
    /// The document is not JSON, is `null`, or is too large.
    #[error("invalid document: {0}")]
    Document(Box<str>),
    /// The idempotency key is invalid.
    #[error("invalid idempotency key: expected 1 to 255 visible ASCII characters")]
    BadKey,
    /// The time of a reservation is outside its limits.
    #[error("a reservation cannot last {seconds} seconds: expected 1 to {max}")]
    BadDuration {
        /// The requested time.
        seconds: u64,
        /// The longest time.
        max: u64,
    },
    /// No document or reservation has this id.
    #[error("unknown document or reservation {0}")]
    UnknownDocument(Uuid),
    /// The state of the document does not allow the action.
    #[error("{} is {}, which does not allow this action", .0.number, .0.state)]
    WrongState(Box<Document>),
    /// The document is being delivered, so it cannot be abandoned now.
    #[error("{} is being delivered: try again when its claim has ended, at {}", .0.number, .0.due.unwrap_or_default())]
    BeingDelivered(Box<Document>),
    /// The store failed or refused the call.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// [`Bates::close`](crate::Bates::close) was called.
    #[error("the numbering machine is closed")]
    Closed,
}

impl Error {
    /// The stable code of the error, as in `docs/errors.md`.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Open(error) => code_of_open_error(error),
            Self::BadSeries { field: "name", .. } => ErrorCode::BAD_NAME,
            Self::BadSeries { .. } => ErrorCode::BAD_SERIES,
            Self::Series(error) => error.code(),
            Self::UnknownSeries(_) => ErrorCode::UNKNOWN_SERIES,
            Self::Next(error) => error.code(),
            Self::Lease(error) => error.code(),
            Self::EndLease(error) => error.code(),
            Self::Assign(error) => error.code(),
            Self::Document(_) => ErrorCode::BAD_DOCUMENT,
            Self::BadKey => ErrorCode::BAD_ARGUMENTS,
            Self::BadDuration { .. } => ErrorCode::BAD_COUNT,
            Self::UnknownDocument(_) => ErrorCode::UNKNOWN_DOCUMENT,
            Self::WrongState(_) => ErrorCode::WRONG_STATE,
            Self::BeingDelivered(_) => ErrorCode::DELIVERY_UNDER_WAY,
            Self::Store(error) => error.code(),
            Self::Closed => ErrorCode::STOPPING,
        }
    }

    /// Whether a number may have been taken that no caller got. It is then a gap and is never issued again.
    pub fn may_burn(&self) -> bool {
        let (Self::Next(NextError::Issue(issue))
        | Self::Lease(LeaseError::Next(NextError::Issue(issue)))
        | Self::Assign(DocumentError::Issue(issue))) = self
        else {
            return false;
        };
        // A forked process takes nothing.
        !matches!(issue, IssueError::Store { error: StoreError::Forked, .. }) && self.code().may_burn()
    }
}

/// A folder that is in use, or that the operating system refuses, may be available later; all others need repair.
fn code_of_open_error(error: &OpenError) -> ErrorCode {
    use OpenError::{Arriving, Damaged, Gone, Left, OtherVersion};
    match error {
        Gone(_) | Damaged { .. } | Left(_) | Arriving(_) | OtherVersion { .. } => ErrorCode::STORE_POISONED,
        _ => ErrorCode::STORE_UNAVAILABLE,
    }
}

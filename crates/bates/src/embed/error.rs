//! Why a call failed: one enum for all of them, with the codes that servers answer.

use bates_core::{AssignRefused, Code, Document, EndRefused, IssueError, LeaseRefused};
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
    /// A word in the description of a series that cannot be read.
    #[error("series {series:?}: {field}: {problem}")]
    Described {
        /// The series.
        series: Box<str>,
        /// Which word.
        field: &'static str,
        /// What is wrong with it.
        problem: Box<str>,
    },
    /// A series that could not be opened.
    #[error(transparent)]
    Series(#[from] MachineError),
    /// There is no series of that name.
    #[error("there is no series {0:?}")]
    UnknownSeries(Box<str>),
    /// No number was given.
    #[error(transparent)]
    Next(#[from] NextError),
    /// Nothing was given in advance.
    #[error(transparent)]
    Lease(#[from] LeaseRefused),
    /// What was given in advance could not be given back.
    #[error(transparent)]
    EndLease(#[from] EndRefused),
    /// A document was not numbered, or no number reserved.
    #[error(transparent)]
    Assign(#[from] AssignRefused),
    /// A text that is no document.
    #[error("the document cannot be taken: {0}")]
    Document(Box<str>),
    /// A text that is no idempotency key.
    #[error("an idempotency key has 1 to 255 visible characters of ASCII")]
    Key,
    /// A time that no reservation lasts.
    #[error("a reservation lasts {seconds} seconds; it may be 1 to {max}")]
    Lasts {
        /// What was asked for.
        seconds: u64,
        /// What may be.
        max: u64,
    },
    /// There is no document or reservation of that id.
    #[error("there is no document or reservation {0}")]
    UnknownDocument(Uuid),
    /// It is in a state in which this cannot be decided.
    #[error("{} is {}", .0.number, .0.state)]
    WrongState(Box<Document>),
    /// It is being delivered and may arrive, so it cannot be abandoned before that has ended.
    #[error("{} is being delivered; its claim ends at {}", .0.number, .0.due.unwrap_or_default())]
    UnderWay(Box<Document>),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// The stable code of the error, as in `docs/errors.md`.
    pub fn code(&self) -> Code {
        match self {
            Self::Open(error) => code_of_opening(error),
            Self::Described { field: "name", .. } => Code::BAD_NAME,
            Self::Described { .. } => Code::BAD_SERIES,
            Self::Series(error) => error.code(),
            Self::UnknownSeries(_) => Code::UNKNOWN_SERIES,
            Self::Next(error) => error.code(),
            Self::Lease(error) => error.code(),
            Self::EndLease(error) => error.code(),
            Self::Assign(error) => error.code(),
            Self::Document(_) => Code::BAD_DOCUMENT,
            Self::Key => Code::BAD_ARGUMENTS,
            Self::Lasts { .. } => Code::BAD_COUNT,
            Self::UnknownDocument(_) => Code::UNKNOWN_DOCUMENT,
            Self::WrongState(_) => Code::WRONG_STATE,
            Self::UnderWay(_) => Code::DELIVERY_UNDER_WAY,
            Self::Store(error) => error.code(),
        }
    }

    /// Whether a number may have been taken that nobody was given. It is then a gap, and never comes again.
    pub fn may_burn(&self) -> bool {
        let (Self::Next(NextError::Issue(issue))
        | Self::Lease(LeaseRefused::Next(NextError::Issue(issue)))
        | Self::Assign(AssignRefused::Issue(issue))) = self
        else {
            return false;
        };
        // A forked process takes nothing.
        !matches!(issue, IssueError::Store { error: StoreError::Forked, .. }) && self.code().may_burn()
    }
}

/// A folder that is in use, or that the operating system refuses, may be available later; others need repair.
fn code_of_opening(error: &OpenError) -> Code {
    use OpenError::{Arriving, Damaged, Gone, Left, OtherVersion};
    match error {
        Gone(_) | Damaged { .. } | Left(_) | Arriving(_) | OtherVersion { .. } => Code::STORE_POISONED,
        _ => Code::STORE_UNAVAILABLE,
    }
}

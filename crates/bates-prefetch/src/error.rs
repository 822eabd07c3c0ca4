//! Why there is no number at hand, and why a buffer could not be closed cleanly.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Why there is no number at hand. What was handed out before stays good.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Empty<E> {
    /// More is on its way. Only calls that do not wait say so.
    #[error("no number is at hand; more are on their way")]
    OnItsWay,
    /// The buffer lasted as long as it could, and getting more failed.
    #[error("no number is at hand, and no more could be fetched: {0}")]
    Failed(#[source] Arc<E>),
    /// More were asked for at once than may be.
    #[error("at most {most} numbers can be taken at once")]
    TooMany {
        /// How many may be.
        most: usize,
    },
    /// It was closed, or the runtime that fetches more has ended. Then what was held could not be given back.
    #[error("numbers in advance were closed here, or the runtime that fetches them has ended")]
    Closed,
    /// This process is a fork of the one that holds the numbers. Only that one hands them out.
    #[error(
        "this process was forked from the one that holds these numbers: take numbers in that process, or build a \
         client of its own in this one"
    )]
    Forked,
}

/// Why a buffer could not be closed cleanly. Numbers that were not reported as unused count as uncertain a day later;
/// they are never issued again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CloseError<E> {
    /// The source refused a report or could not be reached.
    #[error("{numbers} unused numbers were not reported and become uncertain in a day: {error}")]
    Failed {
        /// How many unused numbers were not reported.
        numbers: u64,
        /// The first error.
        #[source]
        error: Arc<E>,
    },
    /// The report took too long.
    #[error("{numbers} unused numbers were not reported within {limit:?} and become uncertain in a day")]
    TimedOut {
        /// How many unused numbers were not reported, besides those of a refill that is still under way.
        numbers: u64,
        /// How long it may take.
        limit: Duration,
    },
    /// The runtime that refills the buffer has ended, and no report can be sent.
    #[error(
        "{numbers} unused numbers were not reported and become uncertain in a day: the runtime that refills \
         the buffer has ended; close the buffer before the runtime"
    )]
    RuntimeEnded {
        /// How many unused numbers were not reported.
        numbers: u64,
    },
    /// This process is a fork of the one that holds the numbers. Only that one can close the buffer.
    #[error("this process was forked from the one that holds these numbers; close them in that process")]
    Forked,
}

/// Not derived, because that would need an error that can be cloned.
impl<E> Clone for CloseError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed { numbers, error } => Self::Failed { numbers: *numbers, error: error.clone() },
            Self::TimedOut { numbers, limit } => Self::TimedOut { numbers: *numbers, limit: *limit },
            Self::RuntimeEnded { numbers } => Self::RuntimeEnded { numbers: *numbers },
            Self::Forked => Self::Forked,
        }
    }
}

//! Why numbers could not be taken, or a buffer not closed.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Why a call got no number.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum TakeError<E> {
    /// The buffer is empty and a refill is under way. Only [`try_next`](crate::Prefetched::try_next) fails with this.
    #[error("no number is in memory and a refill is under way: try again, or wait with `next`")]
    Refilling,
    /// The buffer is empty, and the last refill failed.
    #[error("no number is in memory and the last refill failed: {0}")]
    Failed(#[source] Arc<E>),
    /// The count is above the limit.
    #[error("too many numbers for one call: the limit is {max}")]
    TooMany { max: usize },
    /// The buffer was closed, or the runtime that refills it has ended.
    #[error("the prefetched numbers were closed, or the runtime that refills them has ended")]
    Closed,
    /// This process is a fork of the one that holds the numbers.
    #[error("this process is a fork of the one that holds the numbers: take them there, or connect here")]
    Forked,
}

/// Why a buffer could not be closed cleanly. Unreported numbers become uncertain a day later, and are never reissued.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum CloseError<E> {
    /// The source refused a report or could not be reached.
    #[error("{numbers} unused numbers were not reported and become uncertain in a day: {error}")]
    Failed {
        numbers: u64,
        #[source]
        error: Arc<E>,
    },
    /// The report took too long. Numbers of a refill under way come on top.
    #[error("{numbers} unused numbers were not reported within {limit:?} and become uncertain in a day")]
    TimedOut { numbers: u64, limit: Duration },
    /// The runtime that refills the buffer has ended, and no report can be sent.
    #[error(
        "{numbers} unused numbers were not reported and become uncertain in a day: the runtime that refills \
         the buffer has ended; close the buffer before the runtime"
    )]
    RuntimeEnded { numbers: u64 },
    /// This process is a fork of the one that holds the numbers.
    #[error("this process is a fork of the one that holds the numbers: close them there")]
    Forked,
}

// Not derived: that would need `E: Clone`.
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

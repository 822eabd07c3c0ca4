//! Why there is no number at hand, and why a buffer could not be closed cleanly.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no number at hand. What was handed out before stays good.
#[derive(Debug)]
#[non_exhaustive]
pub enum Empty<E> {
    /// More is on its way. Only calls that do not wait say so.
    OnItsWay,
    /// The buffer lasted as long as it could, and getting more failed.
    Failed(Arc<E>),
    /// More were asked for at once than may be.
    TooMany {
        /// How many may be.
        most: usize,
    },
    /// It was closed, or the runtime that fetches more has ended. Then what was held could not be given back.
    Closed,
    /// This process is a fork of the one that holds the numbers. Only that one hands them out.
    Forked,
}

/// Why a buffer could not be closed cleanly. Numbers that were not reported as unused count as uncertain a day later;
/// they are never issued again.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseError<E> {
    /// The source refused a report or could not be reached.
    Failed {
        /// How many unused numbers were not reported.
        numbers: u64,
        /// The first error.
        error: Arc<E>,
    },
    /// The report took too long.
    TimedOut {
        /// How many unused numbers were not reported, besides those of a refill that is still under way.
        numbers: u64,
        /// How long it may take.
        limit: Duration,
    },
    /// The runtime that refills the buffer has ended, and no report can be sent.
    RuntimeEnded {
        /// How many unused numbers were not reported.
        numbers: u64,
    },
    /// This process is a fork of the one that holds the numbers. Only that one can close the buffer.
    Forked,
}

impl<E> Clone for Empty<E> {
    fn clone(&self) -> Self {
        match self {
            Self::OnItsWay => Self::OnItsWay,
            Self::Failed(error) => Self::Failed(error.clone()),
            Self::TooMany { most } => Self::TooMany { most: *most },
            Self::Closed => Self::Closed,
            Self::Forked => Self::Forked,
        }
    }
}

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

impl<E: fmt::Display> fmt::Display for Empty<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnItsWay => f.write_str("no number is at hand; more are on their way"),
            Self::Failed(error) => {
                write!(f, "no number is at hand, and no more could be fetched: {error}")
            }
            Self::TooMany { most } => write!(f, "at most {most} numbers can be taken at once"),
            Self::Closed => {
                f.write_str("numbers in advance were closed here, or the runtime that fetches them has ended")
            }
            Self::Forked => f.write_str(
                "this process was forked from the one that holds these numbers: take numbers in that process, or build a \
                 client of its own in this one",
            ),
        }
    }
}

impl<E: fmt::Display> fmt::Display for CloseError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { numbers, error } => {
                write!(f, "{numbers} unused numbers were not reported and become uncertain in a day: {error}")
            }
            Self::TimedOut { numbers, limit } => write!(
                f,
                "{numbers} unused numbers were not reported within {limit:?} and become uncertain in a day"
            ),
            Self::RuntimeEnded { numbers } => write!(
                f,
                "{numbers} unused numbers were not reported and become uncertain in a day: the runtime that refills \
                 the buffer has ended; close the buffer before the runtime"
            ),
            Self::Forked => f.write_str(
                "this process was forked from the one that holds these numbers; close them in that process",
            ),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Empty<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::OnItsWay | Self::TooMany { .. } | Self::Closed | Self::Forked => None,
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for CloseError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { error, .. } => Some(&**error),
            Self::TimedOut { .. } | Self::RuntimeEnded { .. } | Self::Forked => None,
        }
    }
}

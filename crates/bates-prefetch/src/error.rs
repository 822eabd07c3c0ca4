//! Why there is no number at hand.

use std::fmt;
use std::sync::Arc;

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
}

impl<E> Clone for Empty<E> {
    fn clone(&self) -> Self {
        match self {
            Self::OnItsWay => Self::OnItsWay,
            Self::Failed(error) => Self::Failed(error.clone()),
            Self::TooMany { most } => Self::TooMany { most: *most },
            Self::Closed => Self::Closed,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Empty<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnItsWay => f.write_str("no number is at hand; more are on their way"),
            Self::Failed(error) => {
                write!(f, "no number that was held in advance is left, and there are no more: {error}")
            }
            Self::TooMany { most } => write!(f, "at most {most} numbers can be taken at once"),
            Self::Closed => {
                f.write_str("numbers in advance were closed here, or the runtime that fetches them has ended")
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Empty<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::OnItsWay | Self::TooMany { .. } | Self::Closed => None,
        }
    }
}

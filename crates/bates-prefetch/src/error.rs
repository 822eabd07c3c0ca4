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
    /// It was closed.
    Closed,
}

impl<E> Clone for Empty<E> {
    fn clone(&self) -> Self {
        match self {
            Self::OnItsWay => Self::OnItsWay,
            Self::Failed(error) => Self::Failed(error.clone()),
            Self::Closed => Self::Closed,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Empty<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnItsWay => f.write_str("no number is at hand; more are on their way"),
            Self::Failed(error) => write!(f, "all numbers that were held in advance are used: {error}"),
            Self::Closed => f.write_str("what was held in advance was given back"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Empty<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::OnItsWay | Self::Closed => None,
        }
    }
}

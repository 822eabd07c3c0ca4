//! A moment on two clocks, to judge how long dated numbers are good.
//!
//! Neither clock is enough. The steady clock stands still while the machine sleeps; the wall clock is the one that says
//! which day it is, and may be set forward or back.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A moment on the steady clock and on the wall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) steady: Instant,
    pub(crate) wall: SystemTime,
}

impl Moment {
    /// Whether a time has passed since an earlier moment, on either clock. A wall clock that was set back counts as
    /// passed: the numbers may be of a day that has not begun.
    pub(crate) fn is_past(self, since: Self, time: Duration) -> bool {
        self.steady.saturating_duration_since(since.steady) >= time
            || self.wall.duration_since(since.wall).map_or(true, |passed| passed >= time)
    }
}

//! A clock that stands still until a test moves it, forwards or backwards.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bates_core::Runtime;
use jiff::Timestamp;

/// A clock that a test sets.
#[derive(Debug)]
pub struct FakeClock(Mutex<Timestamp>);

impl FakeClock {
    /// A clock that shows this moment, such as `2026-12-31T23:59:59Z`.
    pub fn at(moment: &str) -> Self {
        Self(Mutex::new(parse(moment)))
    }

    /// Sets the clock to an earlier or later moment.
    pub fn set(&self, moment: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = parse(moment);
    }
}

fn parse(moment: &str) -> Timestamp {
    moment.parse().expect("a moment such as 2026-12-31T23:59:59Z")
}

impl Runtime for FakeClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

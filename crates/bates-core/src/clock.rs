//! The port to time: what moment it is. Nothing else in the core asks.
//!
//! Only the business date of a number depends on it, never the number's uniqueness: a clock that jumps moves
//! requests to the scope of another period, whose cursor is as durable as any.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells what moment it is.
pub trait Clock: Send + Sync + 'static {
    /// The moment, as the wall has it: it may jump.
    fn now(&self) -> Timestamp;

    /// The time since some moment of the past. It never jumps; only differences mean something.
    fn elapsed(&self) -> Duration;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        STARTED.elapsed()
    }
}

//! The port to time: what moment it is. Nothing else in the core asks.
//!
//! Only the business date of a number depends on it, never the number's uniqueness: a clock that jumps moves
//! requests to the scope of another period, whose cursor is as durable as any.

use jiff::Timestamp;

/// Tells what moment it is.
pub trait Clock: Send + Sync + 'static {
    /// The moment.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

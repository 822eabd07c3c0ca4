//! Documents in the embedded store: numbered, claimed, decided on and removed. Each is pure SQL within a transaction
//! of the writer's: nothing here commits or answers.

pub(crate) mod assign;
pub(crate) mod deliver;
pub(crate) mod list;

use std::time::Duration;

use bates_core::{Clock as _, SystemClock};
use rusqlite::Error;
use rusqlite::types::Type;
use uuid::Uuid;

/// The clock of the outbox: what the wall said when the store was opened, and what has passed since. It never jumps,
/// so that no jump makes a claim last for ever, or voids a reservation early.
pub(crate) struct Steady {
    base: i64,
    since: Duration,
}

impl Steady {
    pub(crate) fn new() -> Self {
        Self { base: SystemClock.now().as_millisecond(), since: SystemClock.elapsed() }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.base + millis(SystemClock.elapsed().saturating_sub(self.since))
    }
}

/// Durations of more than three hundred million years are as good as that.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2)
}

/// Only UUIDs were written.
fn event(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}

/// A column that holds what nobody wrote.
fn strange(column: usize) -> Error {
    Error::InvalidColumnType(column, "text".to_owned(), Type::Text)
}

//! Checkpoints: writing the log into the database. SQLite never does it by itself here: a half-written database needs the
//! whole log, and the state file has to say so first.
//!
//! Invariant: the phase in the state file always says whether the database needs its log, and whether it mixes pages.

use std::io;

use bates_core::StoreError;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::error::write_error;
use crate::state_file::{Phase, StateFile};

/// Max pages of 4 KiB in the log: 40 MiB. With a longer one, a page that many commits change is written back less often,
/// but the opening after a crash reads more.
const LOG_PAGES_MAX: i32 = 10_000;

/// Pages added before the next attempt, if a reader blocked the last one.
const LOG_PAGES_AGAIN: i32 = 1_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    #[error("cannot write the log into the database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("cannot write the state file: {0}")]
    State(#[from] io::Error),
}

impl CheckpointError {
    /// Whether the disk failed, so that its content is unknown.
    pub(crate) fn is_disk_failure(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(write_error(error), StoreError::Poisoned(_)),
            Self::State(_) => true,
        }
    }
}

pub(crate) struct Threshold(i32);

impl Threshold {
    pub(crate) const fn new() -> Self {
        Self(LOG_PAGES_MAX)
    }

    pub(crate) fn check(
        &mut self,
        connection: &Connection,
        state: &StateFile,
    ) -> Result<(), CheckpointError> {
        let (pages, _) = run(connection, CheckpointMode::NOOP)?;
        if pages < self.0 {
            return Ok(());
        }
        let is_done = write_back(connection, state);
        self.0 = if matches!(is_done, Ok(true)) { LOG_PAGES_MAX } else { pages + LOG_PAGES_AGAIN };
        is_done.map(drop)
    }
}

/// Writes the log into the database and empties it. Returns `false` if a reader blocked it.
pub(crate) fn empty(connection: &Connection, state: &StateFile) -> Result<bool, CheckpointError> {
    // In two steps: an empty log would count as lost while the state file says `Checkpoint`.
    Ok(write_back(connection, state)? && run(connection, CheckpointMode::TRUNCATE)?.0 == 0)
}

pub(crate) fn log_pages(connection: &Connection) -> rusqlite::Result<i32> {
    Ok(run(connection, CheckpointMode::NOOP)?.0)
}

/// Writes the log into the database. Returns `false` if a reader blocked part of it.
fn write_back(connection: &Connection, state: &StateFile) -> Result<bool, CheckpointError> {
    let (pages, written) = run(connection, CheckpointMode::NOOP)?;
    if pages != written {
        state.enter(Phase::Checkpoint)?;
        let (pages, written) = run(connection, CheckpointMode::PASSIVE)?;
        if pages != written {
            return Ok(false);
        }
    }
    state.enter(Phase::Open)?;
    Ok(true)
}

/// The pages in the log, and how many of them are in the database.
fn run(connection: &Connection, mode: CheckpointMode) -> rusqlite::Result<(i32, i32)> {
    connection.wal_checkpoint_v2(Some("main"), mode)
}

//! How many commits the store has had, and when the last one was made: one row.
//!
//! Invariant: every transaction that changes anything writes this row. Whatever part of a damaged log is read, the row
//! then says which commit the rest belongs to.

use rusqlite::{Connection, Result, Transaction, params};

use crate::write::{execute, integer, whole};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) commits: u64,
    /// Milliseconds since 1970. `None` until the store is opened for the first time.
    pub(crate) seen_at: Option<i64>,
}

pub(crate) fn read(connection: &Connection) -> Result<Progress> {
    let mut statement = connection.prepare_cached("SELECT commits, seen_at FROM progress")?;
    statement.query_row([], |row| Ok(Progress { commits: whole(row.get(0)?), seen_at: row.get(1)? }))
}

pub(crate) fn raise(transaction: &Transaction<'_>, commits: u64, now: i64) -> Result<()> {
    execute(transaction, "UPDATE progress SET commits = ?, seen_at = ?", params![integer(commits), now])?;
    Ok(())
}

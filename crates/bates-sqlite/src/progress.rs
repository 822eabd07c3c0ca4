//! The number of commits of the store and the time of the last one: one row.
//!
//! Invariant: every transaction that changes anything updates this row. So it names the last commit of a damaged log.

use rusqlite::{Connection, Result, Row, Transaction, params};

use crate::write::{execute, to_i64, to_u64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) commits: u64,
    /// Milliseconds since 1970. `None` until the store is opened for the first time.
    pub(crate) seen_at: Option<i64>,
}

pub(crate) fn read(connection: &Connection) -> Result<Progress> {
    let read = |row: &Row<'_>| Ok(Progress { commits: to_u64(row.get(0)?), seen_at: row.get(1)? });
    connection.query_row("SELECT commits, seen_at FROM progress", [], read)
}

pub(crate) fn raise(transaction: &Transaction<'_>, commits: u64, now: i64) -> Result<()> {
    let sql = "UPDATE progress SET commits = ?, seen_at = ?";
    execute(transaction, sql, params![to_i64(commits), now]).map(drop)
}

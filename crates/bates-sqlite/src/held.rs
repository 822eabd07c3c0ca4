//! Positions that processes hold in memory, and those that are lost.
//!
//! Invariant: a process that lives has written where its holding begins before it hands anything of it out.

use bates_core::{GapReason, PositionRange, RangeSet};
use rusqlite::{Connection, Result, Transaction, params};

use crate::write::{self, ScopeRef, integer};

/// What a run holds of a scope: from here up to the cursor, but for what other tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) from: u64,
    pub(crate) run: i64,
}

pub(crate) fn begin(connection: &Connection) -> Result<i64> {
    connection.execute("INSERT INTO run DEFAULT VALUES", [])?;
    Ok(connection.last_insert_rowid())
}

pub(crate) fn left(
    connection: &Connection,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    held: Held,
    next: u64,
) -> Result<RangeSet> {
    let mut elsewhere = Vec::new();
    for table in ["ledger", "lost", "pooled", "client_lease"] {
        let sql = format!("SELECT first, last FROM {table} WHERE series_id = ? AND scope = ? AND last >= ?");
        let of = params![series_id, scope, integer(held.from)];
        let ranges = write::rows(connection, &sql, of, |row| write::range(row, 0))?;
        elsewhere.extend(ranges.into_iter().flatten());
    }
    Ok(RangeSet::of(PositionRange::new(held.from, next)).difference(&RangeSet::of(elsewhere)))
}

pub(crate) fn lose(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    range: PositionRange,
    reason: GapReason,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO lost (series_id, scope, first, last, reason) VALUES (?, ?, ?, ?, ?)";
    let (first, last) = (integer(range.from()), integer(range.to() - 1));
    write::execute(transaction, sql, params![series_id, scope, first, last, reason.name()]).map(drop)
}

//! Positions that processes hold in memory, and lost positions.
//!
//! Invariant: before a process hands out any of a range, the store has its run and where its held positions begin.

use bates_core::{GapReason, PositionRange, RangeSet};
use rusqlite::{Connection, Result, Transaction, params};

use crate::write::{self, ScopeRef, to_i64};

/// What a run (one opening of the store) holds in a scope: from `from` up to the cursor, except rows of other tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldFrom {
    pub(crate) from: u64,
    pub(crate) run: i64,
}

pub(crate) fn begin_run(connection: &Connection) -> Result<i64> {
    connection.execute("INSERT INTO run DEFAULT VALUES", [])?;
    Ok(connection.last_insert_rowid())
}

/// The positions of `held` below `next` that no other table has.
pub(crate) fn still_held(
    connection: &Connection,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    held: HeldFrom,
    next: u64,
) -> Result<RangeSet> {
    let mut in_tables = Vec::new();
    for table in ["ledger", "lost", "pooled", "client_lease"] {
        let sql = format!("SELECT first, last FROM {table} WHERE series_id = ? AND scope = ? AND last >= ?");
        let values = params![series_id, scope, to_i64(held.from)];
        let ranges = write::rows(connection, &sql, values, |row| write::range(row, 0))?;
        in_tables.extend(ranges.into_iter().flatten());
    }
    Ok(RangeSet::of(PositionRange::new(held.from, next)).difference(&RangeSet::of(in_tables)))
}

pub(crate) fn record_lost(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    range: PositionRange,
    reason: GapReason,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO lost (series_id, scope, first, last, reason) VALUES (?, ?, ?, ?, ?)";
    let (first, last) = write::bounds(range);
    write::execute(transaction, sql, params![series_id, scope, first, last, reason.name()]).map(drop)
}

//! Positions whose numbers somebody else gave out, in the embedded store: how they are written, and passed over.

use bates_core::{Place, Position};
use rusqlite::{Connection, Result, Transaction, params};

use crate::write::{self, ScopeRef, bounded, integer};

/// Enters positions of a scope whose cursor is there. Invariant: the cursor knows where they end in the same commit.
pub(crate) fn enter(transaction: &Transaction<'_>, at: ScopeRef<'_>, positions: &[Position]) -> Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT OR IGNORE INTO aside (series_id, scope, position) VALUES (?, ?, ?)")?;
    for position in positions {
        insert.execute(params![at.series_id, at.scope, integer(position.value())])?;
    }
    let past = positions.iter().max().map_or(0, |last| integer(last.value() + 1));
    let sql = "UPDATE cursor SET aside_to = max(aside_to, ?) WHERE series_id = ? AND scope = ?";
    write::execute(transaction, sql, params![past, at.series_id, at.scope])?;
    Ok(())
}

pub(crate) fn read(connection: &Connection, place: &Place, from: u64, limit: usize) -> Result<Vec<Position>> {
    let sql =
        "SELECT position FROM aside WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?
               AND position >= ? ORDER BY position LIMIT ?";
    let of = params![place.series.as_str(), place.scope.as_str(), integer(from), bounded(limit)];
    write::rows(connection, sql, of, |row| Ok(write::position(row.get(0)?)))
}

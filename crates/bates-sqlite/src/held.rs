//! What processes hold in memory, and what became of it when they crashed or could not give it back.
//!
//! Invariant: a process that lives has written where its holding begins before it hands anything of it out.

use bates_core::{Lease, Ranges, Reason};
use rusqlite::{Connection, Result, Transaction, params};

use crate::write::{ScopeRef, integer, whole};

/// What a run holds of a scope: from here up to the cursor, but for what is in the ledger, or went to a pool or
/// a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) from: u64,
    pub(crate) run: i64,
}

/// Begins a run.
pub(crate) fn begin(connection: &Connection) -> Result<i64> {
    connection.execute("INSERT INTO run DEFAULT VALUES", [])?;
    Ok(connection.last_insert_rowid())
}

/// What is held of a scope whose cursor stands at `next`.
pub(crate) fn left(
    connection: &Connection,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    held: Held,
    next: u64,
) -> Result<Ranges> {
    let from = integer(held.from);
    let read = |sql: &str| {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![series_id, scope, from], |row| {
            Ok(Lease::new(whole(row.get(0)?), whole(row.get(1)?) + 1))
        })?;
        rows.filter_map(Result::transpose).collect::<Result<Vec<Lease>>>()
    };
    let issued = read("SELECT first, last FROM ledger WHERE series_id = ? AND scope = ? AND last >= ?")?;
    let lost = read("SELECT first, last FROM lost WHERE series_id = ? AND scope = ? AND last >= ?")?;
    let pooled = read("SELECT first, last FROM pooled WHERE series_id = ? AND scope = ? AND last >= ?")?;
    let leased =
        read("SELECT first, last FROM client_lease WHERE series_id = ? AND scope = ? AND last >= ?")?;
    let elsewhere = Ranges::of([issued, lost, pooled, leased].into_iter().flatten());
    Ok(Ranges::of(Lease::new(held.from, next)).without(&elsewhere))
}

/// Writes down that nobody has these positions.
pub(crate) fn lose(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    range: Lease,
    reason: Reason,
) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO lost (series_id, scope, first, last, reason) VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![series_id, scope, integer(range.from()), integer(range.to() - 1), reason.name()])?;
    Ok(())
}

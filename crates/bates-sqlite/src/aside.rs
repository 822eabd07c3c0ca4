//! Positions whose numbers somebody else gave out, in the embedded store: how they are written, and passed over.

use bates_core::{Assign, AssignError, Cursor, Lease, Place, Purpose, StoreError, free_run, free_span};
use rusqlite::{Connection, OptionalExtension, Result, Transaction, params};

use crate::pool;
use crate::write::{self, Refusable, Standing, integer, whole};

const FROM: &str =
    "SELECT position FROM aside WHERE series_id = ? AND scope = ? AND position >= ? ORDER BY position";

/// Positions from where a scope stands, at most `count` that are free, below `end`, and which of them are not: a lease
/// reaches over those, everything else is one run.
pub(crate) fn free(
    transaction: &Transaction<'_>,
    scope: &str,
    standing: &Standing,
    (purpose, count, end): (Purpose, u64, u64),
) -> Result<Option<(Lease, Vec<u64>)>> {
    if purpose == Purpose::Lease {
        return span(transaction, scope, standing, (count, end));
    }
    Ok(run(transaction, scope, standing, (count, end))?.map(|run| (run, Vec::new())))
}

/// The first positions from where a scope stands that are free: at most `count`, below `end`.
fn run(
    transaction: &Transaction<'_>,
    scope: &str,
    standing: &Standing,
    (count, end): (u64, u64),
) -> Result<Option<Lease>> {
    let next = standing.cursor.next;
    if standing.aside_to <= next {
        return free_run(next, count, end, || Ok(None));
    }
    let mut statement = transaction.prepare_cached(FROM)?;
    let mut rows = statement.query(params![standing.series_id, scope, integer(next)])?;
    free_run(next, count, end, || rows.next()?.map(|row| row.get(0).map(whole)).transpose())
}

/// Positions from where a scope stands, of which at most `count` are free, below `end`; and the others.
fn span(
    transaction: &Transaction<'_>,
    scope: &str,
    standing: &Standing,
    (count, end): (u64, u64),
) -> Result<Option<(Lease, Vec<u64>)>> {
    let next = standing.cursor.next;
    if standing.aside_to <= next {
        return free_span(next, count, end, || Ok(None));
    }
    let mut statement = transaction.prepare_cached(FROM)?;
    let mut rows = statement.query(params![standing.series_id, scope, integer(next)])?;
    free_span(next, count, end, || rows.next()?.map(|row| row.get(0).map(whole)).transpose())
}

/// The first position from where a scope stands that is free and accepted by its rules, and its number.
pub(crate) fn first_accepted(
    transaction: &Transaction<'_>,
    ask: &Assign,
    standing: &Standing,
) -> Refusable<(u64, Box<str>), AssignError> {
    let mut next = standing.cursor.next;
    loop {
        let (position, number) = match ask.first_accepted(next) {
            Ok(accepted) => accepted,
            Err(error) => return Ok(Err(error)),
        };
        let at = (standing.series_id, ask.place.scope.as_str());
        if position >= standing.aside_to || !is_aside(transaction, at, position)? {
            return Ok(Ok((position, number)));
        }
        next = position + 1;
    }
}

fn is_aside(transaction: &Transaction<'_>, at: (i64, &str), position: u64) -> Result<bool> {
    let sql = "SELECT 1 FROM aside WHERE series_id = ? AND scope = ? AND position = ?";
    let mut statement = transaction.prepare_cached(sql)?;
    let found = statement.query_row(params![at.0, at.1, integer(position)], |_| Ok(())).optional()?;
    Ok(found.is_some())
}

/// Writes positions down, and answers how many of them were granted before.
pub(crate) fn set(
    transaction: &Transaction<'_>,
    place: &Place,
    positions: &[u64],
) -> Refusable<u64, StoreError> {
    let Some((series_id, _)) = write::series(transaction, &place.series)? else {
        return Ok(Err(write::unknown(place)));
    };
    let at = (series_id, place.scope.as_str());
    pool::forget_server(transaction, at)?;
    let found = write::found(transaction, place)?;
    let is_new = found.is_none();
    let Standing { cursor: Cursor { next, version }, held, .. } = match found {
        Some(found) => found,
        None => Standing::new(series_id, write::start(transaction, series_id)?),
    };
    write::put(transaction, at, Cursor { next, version: version + 1 }, held, is_new)?;
    enter(transaction, at, positions)?;
    Ok(Ok(positions.iter().filter(|position| **position < next).count() as u64))
}

/// Enters positions of a scope whose cursor is there. Invariant: the cursor knows where they end in the same commit.
pub(crate) fn enter(transaction: &Transaction<'_>, at: (i64, &str), positions: &[u64]) -> Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT OR IGNORE INTO aside (series_id, scope, position) VALUES (?, ?, ?)")?;
    for position in positions {
        insert.execute(params![at.0, at.1, integer(*position)])?;
    }
    let past = positions.iter().max().map_or(0, |last| integer(last + 1));
    transaction
        .prepare_cached("UPDATE cursor SET aside_to = max(aside_to, ?) WHERE series_id = ? AND scope = ?")?
        .execute(params![past, at.0, at.1])?;
    Ok(())
}

/// Those from `from` on, ascending, at most `limit`.
pub(crate) fn read(connection: &Connection, place: &Place, from: u64, limit: usize) -> Result<Vec<u64>> {
    let mut statement = connection.prepare_cached(
        "SELECT position FROM aside WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?
         AND position >= ? ORDER BY position LIMIT ?",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let of = params![place.series.as_str(), place.scope.as_str(), integer(from), limit];
    statement.query_map(of, |row| Ok(whole(row.get(0)?)))?.collect()
}

//! What is written, each within a transaction of the writer's. Pure SQL: nothing here commits or answers.

use bates_core::{Cursor, Lease, Place, SeriesName, StoreError};
use rusqlite::{OptionalExtension, Result, Transaction, params};

/// An answer that is part of the numbering, inside an outcome that is part of the database.
pub(crate) type Refusable<T, E> = Result<std::result::Result<T, E>>;

pub(crate) fn probe(transaction: &Transaction<'_>) -> Refusable<(), StoreError> {
    // A change is all that it takes: the writer raises the number of commits.
    transaction.prepare_cached("UPDATE progress SET commits = commits")?.execute([])?;
    Ok(Ok(()))
}

/// Describes a series if it has the description `before`, or this one already.
pub(crate) fn describe(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    before: Option<&str>,
    description: Option<&str>,
) -> Refusable<bool, StoreError> {
    let mut statement = transaction.prepare_cached("SELECT description FROM series WHERE name = ?")?;
    let found = statement.query_row([series.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    let found = found.as_ref().map(Option::as_deref);
    if found.is_some_and(|found| found != before && found != description) {
        return Ok(Ok(false));
    }
    Ok(put_description(transaction, series, description)?.map(|()| true))
}

pub(crate) fn put_description(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    description: Option<&str>,
) -> Refusable<(), StoreError> {
    let changed = transaction
        .prepare_cached("UPDATE series SET description = ? WHERE name = ?")?
        .execute(params![description, series.as_str()])?;
    Ok(if changed == 1 { Ok(()) } else { Err(StoreError::UnknownSeries(series.as_str().into())) })
}

pub(crate) fn series(transaction: &Transaction<'_>, series: &SeriesName) -> Result<Option<(i64, u64)>> {
    let mut statement = transaction.prepare_cached("SELECT id, scopes FROM series WHERE name = ?")?;
    statement.query_row([series.as_str()], |row| Ok((row.get(0)?, whole(row.get(1)?)))).optional()
}

/// The key of a scope's rows.
#[derive(Clone, Copy)]
pub(crate) struct ScopeRef<'s> {
    pub(crate) series_id: i64,
    pub(crate) scope: &'s str,
}

impl<'s> ScopeRef<'s> {
    pub(crate) fn new(series_id: i64, scope: &'s str) -> Self {
        Self { series_id, scope }
    }
}

/// Enters positions in the ledger. What joins the last range makes it longer, so that the ledger grows with the
/// number of gaps, not of numbers.
pub(crate) fn enter(transaction: &Transaction<'_>, series_id: i64, scope: &str, lease: Lease) -> Result<()> {
    let (first, last) = (integer(lease.from()), integer(lease.to() - 1));
    let longer = transaction
        .prepare_cached(
            "UPDATE ledger SET last = ?4 WHERE series_id = ?1 AND scope = ?2 AND last = ?3 - 1 AND first =
                 (SELECT max(first) FROM ledger WHERE series_id = ?1 AND scope = ?2)",
        )?
        .execute(params![series_id, scope, first, last])?;
    if longer == 0 {
        transaction
            .prepare_cached("INSERT INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)")?
            .execute(params![series_id, scope, first, last])?;
    }
    Ok(())
}

pub(crate) fn cursor(
    connection: &rusqlite::Connection,
    series_id: i64,
    scope: &str,
) -> Result<Option<Cursor>> {
    let mut statement =
        connection.prepare_cached("SELECT next, version FROM cursor WHERE series_id = ? AND scope = ?")?;
    let read = |row: &rusqlite::Row<'_>| Ok(Cursor { next: whole(row.get(0)?), version: whole(row.get(1)?) });
    statement.query_row(params![series_id, scope], read).optional()
}

pub(crate) fn unknown(place: &Place) -> StoreError {
    StoreError::UnknownSeries(place.series.as_str().into())
}

/// Positions are below 2^53 and versions count writes, so both fit SQLite's signed integers.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).expect("positions and versions are far below 2^63")
}

/// Only [`integer`] writes these columns.
pub(crate) fn whole(value: i64) -> u64 {
    u64::try_from(value).expect("the column holds what was written: no negative number")
}

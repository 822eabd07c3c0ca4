//! Statements and columns that several modules use. Pure SQL: nothing here commits or answers.

use bates_core::{Cursor, Position, PositionRange, ScopeId, ScopeKey, SeriesName, StoreError};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Params, Result, Row, Transaction, params};

/// An answer of the store, inside an outcome of the database.
pub(crate) type Refusable<T> = Result<std::result::Result<T, StoreError>>;

pub(crate) fn execute(connection: &Connection, sql: &str, of: impl Params) -> Result<usize> {
    connection.prepare_cached(sql)?.execute(of)
}

pub(crate) fn row<T>(
    connection: &Connection,
    sql: &str,
    of: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(of, read).optional()
}

pub(crate) fn rows<T>(
    connection: &Connection,
    sql: &str,
    of: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(of, read)?.collect()
}

/// The range in the columns `first` and, after it, `last`.
pub(crate) fn range(row: &Row<'_>, first: usize) -> Result<Option<PositionRange>> {
    Ok(PositionRange::new(whole(row.get(first)?), whole(row.get(first + 1)?) + 1))
}

/// The place in the columns `column`, a name, and, after it, a scope.
pub(crate) fn scope_id(row: &Row<'_>, column: usize) -> Result<ScopeId> {
    let series = row.get_ref(column)?.as_str()?.parse().map_err(|_| strange(column))?;
    Ok(ScopeId { series, scope: ScopeKey::from_store(row.get_ref(column + 1)?.as_str()?) })
}

/// A column holds a value that Bates never writes.
pub(crate) fn strange(column: usize) -> Error {
    Error::InvalidColumnType(column, "text".to_owned(), Type::Text)
}

pub(crate) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(crate) fn probe(transaction: &Transaction<'_>) -> Refusable<()> {
    // Any change makes the writer raise the number of commits.
    execute(transaction, "UPDATE progress SET commits = commits", [])?;
    Ok(Ok(()))
}

/// Describes a series if it has the description `before`, or this one already.
pub(crate) fn describe(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    before: Option<&str>,
    description: Option<&str>,
) -> Refusable<bool> {
    let sql = "SELECT description FROM series WHERE name = ?";
    let found: Option<Option<String>> = row(transaction, sql, [series.as_str()], |row| row.get(0))?;
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
) -> Refusable<()> {
    let sql = "UPDATE series SET description = ? WHERE name = ?";
    let changed = execute(transaction, sql, params![description, series.as_str()])?;
    Ok(if changed == 1 { Ok(()) } else { Err(unknown(series)) })
}

pub(crate) fn series(connection: &Connection, series: &SeriesName) -> Result<Option<i64>> {
    row(connection, "SELECT id FROM series WHERE name = ?", [series.as_str()], |row| row.get(0))
}

/// The key of the rows at a place; `None` if there is no such series.
pub(crate) fn at<'p>(connection: &Connection, scope_id: &'p ScopeId) -> Result<Option<ScopeRef<'p>>> {
    Ok(series(connection, &scope_id.series)?.map(|id| ScopeRef::new(id, scope_id.scope.as_str())))
}

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

/// Enters positions in the ledger. Neighbours join, so that it grows with the number of gaps, not of numbers.
pub(crate) fn enter(transaction: &Transaction<'_>, at: ScopeRef<'_>, lease: PositionRange) -> Result<()> {
    let join = "UPDATE ledger SET last = ?4 WHERE series_id = ?1 AND scope = ?2 AND last = ?3 - 1 AND first =
                    (SELECT max(first) FROM ledger WHERE series_id = ?1 AND scope = ?2)";
    let insert = "INSERT INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)";
    let of = params![at.series_id, at.scope, integer(lease.from()), integer(lease.to() - 1)];
    if execute(transaction, join, of)? > 0 { Ok(()) } else { execute(transaction, insert, of).map(drop) }
}

pub(crate) fn cursor(connection: &Connection, series_id: i64, scope: &str) -> Result<Option<Cursor>> {
    let sql = "SELECT next, version FROM cursor WHERE series_id = ? AND scope = ?";
    let read = |row: &Row<'_>| Ok(Cursor { next: whole(row.get(0)?), version: whole(row.get(1)?) });
    row(connection, sql, params![series_id, scope], read)
}

pub(crate) fn unknown(series: &SeriesName) -> StoreError {
    StoreError::UnknownSeries(series.as_str().into())
}

/// Positions are below 2^53 and versions count writes, so both fit SQLite's signed integers.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).expect("positions and versions are far below 2^63")
}

/// Only positions are written to these columns.
pub(crate) fn position(value: i64) -> Position {
    Position::new(whole(value)).expect("the column holds what was written: a position below 2^53")
}

/// Only [`integer`] writes these columns.
pub(crate) fn whole(value: i64) -> u64 {
    u64::try_from(value).expect("the column holds what was written: no negative number")
}

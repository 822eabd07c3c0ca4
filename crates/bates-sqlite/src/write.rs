//! Statements and columns that several modules use. Pure SQL: nothing here commits or answers.

use bates_core::{
    Cursor, DescriptionChange, Position, PositionRange, ScopeId, ScopeKey, SeriesName, StoreError,
};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Params, Result, Row, Transaction, params};

use crate::error::WriteResult;

pub(crate) fn execute(connection: &Connection, sql: &str, values: impl Params) -> Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

pub(crate) fn row<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(values, read).optional()
}

pub(crate) fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read)?.collect()
}

/// Reads the range in column `first` and the column after it.
pub(crate) fn range(row: &Row<'_>, first: usize) -> Result<Option<PositionRange>> {
    Ok(PositionRange::new(to_u64(row.get(first)?), to_u64(row.get(first + 1)?) + 1))
}

/// The first and the last position of a range, as columns hold them.
pub(crate) fn bounds(range: PositionRange) -> (i64, i64) {
    (to_i64(range.from()), to_i64(range.to() - 1))
}

/// Reads a series name in `column` and a scope in the column after it.
pub(crate) fn scope_id(row: &Row<'_>, column: usize) -> Result<ScopeId> {
    let series = row.get_ref(column)?.as_str()?.parse().map_err(|_| invalid_column(column))?;
    Ok(ScopeId { series, scope: ScopeKey::from_store(row.get_ref(column + 1)?.as_str()?) })
}

/// The error for a value that Bates never writes.
pub(crate) fn invalid_column(column: usize) -> Error {
    Error::InvalidColumnType(column, "text".to_owned(), Type::Text)
}

pub(crate) fn to_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Checks that the store can write: any change makes the writer raise the number of commits.
pub(crate) fn probe(transaction: &Transaction<'_>) -> WriteResult<()> {
    execute(transaction, "UPDATE progress SET commits = commits", [])?;
    Ok(())
}

/// Only this process changes series, so there is nothing to compare.
const REVISION: u64 = 0;

/// Replaces the description `before` of a series. Returns `false` if the series has neither it nor the new one.
pub(crate) fn describe(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    change: &DescriptionChange,
) -> WriteResult<bool> {
    let sql = "SELECT description FROM series WHERE name = ?";
    let stored: Option<Option<String>> = row(transaction, sql, [series.as_str()], |row| row.get(0))?;
    let fits = change.fits(stored.ok_or_else(|| unknown(series))?.as_deref(), REVISION);
    if fits {
        put_description(transaction, series, change.after.as_deref())?;
    }
    Ok(fits)
}

pub(crate) fn put_description(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    description: Option<&str>,
) -> WriteResult<()> {
    let sql = "UPDATE series SET description = ? WHERE name = ?";
    let changed = execute(transaction, sql, params![description, series.as_str()])?;
    if changed == 1 { Ok(()) } else { Err(unknown(series).into()) }
}

fn find_series(connection: &Connection, series: &SeriesName) -> Result<Option<i64>> {
    row(connection, "SELECT id FROM series WHERE name = ?", [series.as_str()], |row| row.get(0))
}

pub(crate) fn series_id(connection: &Connection, series: &SeriesName) -> WriteResult<i64> {
    Ok(find_series(connection, series)?.ok_or_else(|| unknown(series))?)
}

/// The key of the rows of a scope; `None` if its series does not exist.
pub(crate) fn find_scope<'s>(connection: &Connection, scope_id: &'s ScopeId) -> Result<Option<ScopeRef<'s>>> {
    let scope = scope_id.scope.as_str();
    Ok(find_series(connection, &scope_id.series)?.map(|series_id| ScopeRef { series_id, scope }))
}

/// The key of the rows of a scope; an error if its series does not exist.
pub(crate) fn scope_ref<'s>(connection: &Connection, scope_id: &'s ScopeId) -> WriteResult<ScopeRef<'s>> {
    Ok(ScopeRef { series_id: series_id(connection, &scope_id.series)?, scope: scope_id.scope.as_str() })
}

#[derive(Clone, Copy)]
pub(crate) struct ScopeRef<'s> {
    pub(crate) series_id: i64,
    pub(crate) scope: &'s str,
}

/// Adds issued positions to the ledger. Adjacent ranges are merged, so the table grows with the number of gaps.
pub(crate) fn record_issued(
    transaction: &Transaction<'_>,
    at: ScopeRef<'_>,
    range: PositionRange,
) -> Result<()> {
    let join = "UPDATE ledger SET last = ?4 WHERE series_id = ?1 AND scope = ?2 AND last = ?3 - 1 AND first =
                    (SELECT max(first) FROM ledger WHERE series_id = ?1 AND scope = ?2)";
    let insert = "INSERT INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)";
    let (first, last) = bounds(range);
    let values = params![at.series_id, at.scope, first, last];
    if execute(transaction, join, values)? == 0 {
        execute(transaction, insert, values)?;
    }
    Ok(())
}

pub(crate) fn cursor(connection: &Connection, series_id: i64, scope: &str) -> Result<Option<Cursor>> {
    let sql = "SELECT next, version FROM cursor WHERE series_id = ? AND scope = ?";
    let read = |row: &Row<'_>| Ok(Cursor { next: to_u64(row.get(0)?), version: to_u64(row.get(1)?) });
    row(connection, sql, params![series_id, scope], read)
}

pub(crate) fn unknown(series: &SeriesName) -> StoreError {
    StoreError::UnknownSeries(series.as_str().into())
}

/// Positions are below 2^53 and versions count writes, so both fit SQLite's signed integers.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).expect("positions and versions are far below 2^63")
}

/// Only positions are written to these columns.
pub(crate) fn position(value: i64) -> Position {
    Position::new(to_u64(value)).expect("Bates writes only positions below 2^53 to this column")
}

/// Only [`to_i64`] writes these columns.
pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).expect("Bates writes no negative number to this column")
}

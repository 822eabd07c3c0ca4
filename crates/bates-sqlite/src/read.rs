//! What is read, on a connection of its own: a snapshot beside the writer, which waits for nobody.

use bates_core::{Cursor, Lease, Place, ScopeKey, SeriesName};
use rusqlite::{Connection, OptionalExtension, Result, params};
use uuid::Uuid;

use crate::write::{self, whole};

pub(crate) fn cursor(connection: &Connection, place: &Place) -> Result<Option<Cursor>> {
    match series_id(connection, &place.series)? {
        Some(series_id) => write::cursor(connection, series_id, place.scope.as_str()),
        None => Ok(None),
    }
}

pub(crate) fn scopes(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Cursor)>> {
    let Some(series_id) = series_id(connection, series)? else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(
        "SELECT scope, next, version FROM cursor
         WHERE series_id = ? AND (? OR scope > ?) ORDER BY scope LIMIT ?",
    )?;
    let after_key = after.map_or("", ScopeKey::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![series_id, after.is_none(), after_key, limit], |row| {
        let cursor = Cursor { next: whole(row.get(1)?), version: whole(row.get(2)?) };
        Ok((ScopeKey::from_store(&row.get::<_, String>(0)?), cursor))
    })?;
    rows.collect()
}

pub(crate) fn descriptions(connection: &Connection) -> Result<Vec<(SeriesName, Box<str>)>> {
    let mut statement = connection
        .prepare_cached("SELECT name, description FROM series WHERE description IS NOT NULL ORDER BY name")?;
    let rows = statement.query_map([], |row| {
        let name: SeriesName = row.get::<_, String>(0)?.parse().expect("only names were written");
        Ok((name, row.get::<_, String>(1)?.into()))
    })?;
    rows.collect()
}

pub(crate) fn ledger(connection: &Connection, place: &Place) -> Result<Vec<Lease>> {
    let Some(series_id) = series_id(connection, &place.series)? else { return Ok(Vec::new()) };
    let mut statement = connection
        .prepare_cached("SELECT first, last FROM ledger WHERE series_id = ? AND scope = ? ORDER BY first")?;
    let rows = statement.query_map(params![series_id, place.scope.as_str()], |row| {
        Ok((whole(row.get(0)?), whole(row.get(1)?) + 1))
    })?;
    let mut joined: Vec<Lease> = Vec::new();
    for row in rows {
        let (from, to) = row?;
        let from = match joined.last() {
            Some(last) if last.to() == from => joined.pop().map_or(from, Lease::from),
            _ => from,
        };
        joined.extend(Lease::new(from, to));
    }
    Ok(joined)
}

fn series_id(connection: &Connection, series: &SeriesName) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM series WHERE name = ?")?;
    statement.query_row([series.as_str()], |row| row.get(0)).optional()
}

/// Which store this is.
pub(crate) fn identity(connection: &Connection) -> Result<Uuid> {
    connection.query_row("SELECT id FROM identity", [], |row| row.get(0).map(Uuid::from_bytes))
}

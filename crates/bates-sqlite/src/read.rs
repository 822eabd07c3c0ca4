//! What is read, on a connection of its own: a snapshot beside the writer, which waits for nobody.

use bates_core::{Cursor, Lease, Place, Ranges, ScopeKey, SeriesName};
use rusqlite::{Connection, Result, Row, params};
use uuid::Uuid;

use crate::write::{self, bounded, rows, whole};

pub(crate) fn cursor(connection: &Connection, place: &Place) -> Result<Option<Cursor>> {
    match write::at(connection, place)? {
        Some(at) => write::cursor(connection, at.series_id, at.scope),
        None => Ok(None),
    }
}

pub(crate) fn scopes(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Cursor)>> {
    let sql = "SELECT scope, next, version FROM cursor
               WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?) ORDER BY scope LIMIT ?";
    let of = params![series.as_str(), after.is_none(), after.map_or("", ScopeKey::as_str), bounded(limit)];
    rows(connection, sql, of, |row| {
        let cursor = Cursor { next: whole(row.get(1)?), version: whole(row.get(2)?) };
        Ok((ScopeKey::from_store(row.get_ref(0)?.as_str()?), cursor))
    })
}

pub(crate) fn descriptions(connection: &Connection) -> Result<Vec<(SeriesName, Box<str>)>> {
    let sql = "SELECT name, description FROM series WHERE description IS NOT NULL ORDER BY name";
    rows(connection, sql, [], |row| {
        let name: SeriesName = row.get_ref(0)?.as_str()?.parse().expect("only names were written");
        Ok((name, row.get::<_, String>(1)?.into()))
    })
}

pub(crate) fn ledger(connection: &Connection, place: &Place) -> Result<Vec<Lease>> {
    let sql = "SELECT first, last FROM ledger
               WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?";
    let of = params![place.series.as_str(), place.scope.as_str()];
    let issued = rows(connection, sql, of, |row: &Row<'_>| write::range(row, 0))?;
    Ok(Ranges::of(issued.into_iter().flatten()).iter().collect())
}

/// Which store this is.
pub(crate) fn identity(connection: &Connection) -> Result<Uuid> {
    connection.query_row("SELECT id FROM identity", [], |row| row.get(0).map(Uuid::from_bytes))
}

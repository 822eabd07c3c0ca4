//! What only a move needs: everything read, everything written as it was elsewhere, and the mark that keeps two
//! stores from serving.

use bates_core::{Adopted, Cursor, Definition, Mark, Movable, Pinning, SeriesName, StoreError};
use rusqlite::{Connection, OptionalExtension, Result, Transaction, params};

use crate::SqliteStore;
use crate::write::{self, Refusable, integer, whole};

impl Movable for SqliteStore {
    async fn definitions(&self) -> std::result::Result<Vec<Pinning>, StoreError> {
        self.read(definitions)
    }

    async fn adopt(&self, series: SeriesName, scopes: Vec<Adopted>) -> std::result::Result<(), StoreError> {
        self.write(move |transaction| adopt(transaction, &series, &scopes)).await
    }

    async fn marked(&self) -> std::result::Result<Option<Mark>, StoreError> {
        self.read(marked)
    }

    async fn mark(&self, mark: Option<Mark>) -> std::result::Result<(), StoreError> {
        self.write(move |transaction| put_mark(transaction, mark.as_ref())).await
    }
}

fn definitions(connection: &Connection) -> Result<Vec<Pinning>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key
         FROM series ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| {
        let text = |column| row.get::<_, String>(column);
        let definition = Definition {
            series: text(0)?.parse().expect("only names were written"),
            template: text(1)?.into(),
            parameters: text(2)?.into(),
            shuffled: row.get(3)?,
            start: whole(row.get(4)?),
            reset: text(5)?.into(),
            time_zone: text(6)?.into(),
            construction: row.get(7)?,
        };
        Ok((definition, row.get(8)?))
    })?;
    rows.collect()
}

fn adopt(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    scopes: &[Adopted],
) -> Refusable<(), StoreError> {
    let Some((series_id, _)) = write::series(transaction, series)? else {
        return Ok(Err(StoreError::UnknownSeries(series.as_str().into())));
    };
    for Adopted { scope, cursor, ledger } in scopes {
        let here = write::cursor(transaction, series_id, scope.as_str())?;
        let Cursor { next, version } = here.unwrap_or(Cursor { next: 0, version: 0 });
        let cursor = Cursor { next: cursor.next.max(next), version: cursor.version.max(version) };
        write::put(transaction, (series_id, scope.as_str()), cursor, None, here.is_none())?;
        for lease in ledger {
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)",
                )?
                .execute(params![
                    series_id,
                    scope.as_str(),
                    integer(lease.from()),
                    integer(lease.to() - 1)
                ])?;
        }
    }
    Ok(Ok(()))
}

pub(crate) fn marked(connection: &Connection) -> Result<Option<Mark>> {
    let mut statement = connection.prepare_cached("SELECT kind, store FROM mark")?;
    let read = |row: &rusqlite::Row<'_>| {
        let store = row.get::<_, String>(1)?.into();
        Ok(if row.get::<_, String>(0)? == "left" { Mark::Left(store) } else { Mark::Arriving(store) })
    };
    statement.query_row([], read).optional()
}

/// Documents and keys are not copied. What is still to be delivered or decided would be forgotten with them, and the
/// same request would get a second number.
fn has_documents(connection: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM document WHERE state NOT IN ('delivered', 'confirmed'))
                   OR EXISTS (SELECT 1 FROM idempotency)";
    connection.query_row(sql, [], |row| row.get(0))
}

fn put_mark(transaction: &Transaction<'_>, mark: Option<&Mark>) -> Refusable<(), StoreError> {
    if let Some(Mark::Left(_)) = mark
        && has_documents(transaction)?
    {
        let told = "it has documents or idempotency keys, and those cannot be moved yet";
        return Ok(Err(StoreError::Unavailable(told.into())));
    }
    transaction.execute("DELETE FROM mark", [])?;
    let (kind, store) = match mark {
        None => return Ok(Ok(())),
        Some(Mark::Left(to)) => ("left", to),
        Some(Mark::Arriving(from)) => ("arriving", from),
    };
    transaction.execute("INSERT INTO mark (kind, store) VALUES (?, ?)", [kind, store])?;
    Ok(Ok(()))
}

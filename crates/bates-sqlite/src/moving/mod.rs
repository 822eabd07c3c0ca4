//! What only a move needs: everything read, everything written as it was elsewhere, and the mark that keeps two
//! stores from serving.

mod read;
mod write;

use bates_core::{
    Adopted, Definition, Kept, Mark, Move, MoveStore, Page, Pinning, Request, ScopeKey, SeriesName, SetAside,
    StoreError,
};
use rusqlite::{Connection, OptionalExtension, Result, Transaction, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::write::{Refusable, whole};

impl MoveStore for SqliteStore {
    async fn definitions(&self) -> std::result::Result<Vec<Pinning>, StoreError> {
        self.read(definitions)
    }

    async fn leaving(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> std::result::Result<Vec<Adopted>, StoreError> {
        self.read(|connection| read::leaving(connection, &series, after.as_ref(), limit))
    }

    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, u64)>,
        limit: usize,
    ) -> std::result::Result<Vec<SetAside>, StoreError> {
        self.read(|connection| read::all_aside(connection, &series, after.as_ref(), limit))
    }

    async fn kept(
        &self,
        after: Option<Uuid>,
        limit: usize,
        bytes: usize,
    ) -> std::result::Result<Vec<Kept>, StoreError> {
        self.read(|connection| read::kept(connection, after, limit, bytes))
    }

    async fn requests(
        &self,
        after: Option<Request>,
        limit: usize,
    ) -> std::result::Result<Vec<Request>, StoreError> {
        self.read(|connection| read::requests(connection, after.as_ref(), limit))
    }

    async fn adopt(&self, run: Uuid, page: Page) -> std::result::Result<bool, StoreError> {
        self.write(move |transaction| match marked(transaction)? {
            Some(Mark::Arriving(arriving)) if arriving.run == run => {
                Ok(write::adopt(transaction, &page)?.map(|()| true))
            }
            _ => Ok(Ok(false)),
        })
        .await
    }

    async fn marked(&self) -> std::result::Result<Option<Mark>, StoreError> {
        self.read(marked)
    }

    async fn mark(
        &self,
        expected: Option<Mark>,
        mark: Option<Mark>,
    ) -> std::result::Result<bool, StoreError> {
        self.write(move |transaction| change_mark(transaction, expected.as_ref(), mark.as_ref())).await
    }
}

fn definitions(connection: &Connection) -> Result<Vec<Pinning>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key,
             promise, rules
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
            promise: row.get::<_, Option<String>>(9)?.and_then(|promise| promise.parse().ok()),
            rules: row.get::<_, Option<String>>(10)?.map(Into::into),
        };
        Ok((definition, row.get(8)?))
    })?;
    rows.collect()
}

pub(crate) fn marked(connection: &Connection) -> Result<Option<Mark>> {
    let mut statement = connection.prepare_cached("SELECT kind, store, move, run FROM mark")?;
    let read = |row: &rusqlite::Row<'_>| {
        let id = |bytes: Option<[u8; 16]>| bytes.map(Uuid::from_bytes).unwrap_or_default();
        let of = Move { id: id(row.get(2)?), run: id(row.get(3)?), other: row.get::<_, String>(1)?.into() };
        Ok(if row.get::<_, String>(0)? == "left" { Mark::Left(of) } else { Mark::Arriving(of) })
    };
    statement.query_row([], read).optional()
}

fn change_mark(
    transaction: &Transaction<'_>,
    expected: Option<&Mark>,
    mark: Option<&Mark>,
) -> Refusable<bool, StoreError> {
    let found = marked(transaction)?;
    if found.as_ref() == mark {
        return Ok(Ok(true));
    }
    // A store that is being filled has series; one that is not must have none.
    let begins = found.is_none() && matches!(mark, Some(Mark::Arriving(_)));
    if found.as_ref() != expected || begins && !definitions(transaction)?.is_empty() {
        return Ok(Ok(false));
    }
    write_mark(transaction, mark)?;
    Ok(Ok(true))
}

/// Writes the mark within a transaction.
pub(crate) fn write_mark(transaction: &Transaction<'_>, mark: Option<&Mark>) -> Result<()> {
    transaction.execute("DELETE FROM mark", [])?;
    let (kind, of) = match mark {
        None => return Ok(()),
        Some(Mark::Left(of)) => ("left", of),
        Some(Mark::Arriving(of)) => ("arriving", of),
    };
    transaction.execute(
        "INSERT INTO mark (kind, store, move, run) VALUES (?, ?, ?, ?)",
        params![kind, of.other, of.id.as_bytes(), of.run.as_bytes()],
    )?;
    Ok(())
}

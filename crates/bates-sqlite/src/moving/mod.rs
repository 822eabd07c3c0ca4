//! What only a move needs: everything read, everything written as it was elsewhere, and the mark that keeps two
//! stores from serving.

mod read;
mod write;

use bates_core::{
    Adopted, Definition, Kept, Mark, Movable, Page, Pinning, Request, ScopeKey, SeriesName, SetAside,
    StoreError,
};
use rusqlite::{Connection, OptionalExtension, Result, Transaction};
use uuid::Uuid;

use crate::SqliteStore;
use crate::write::{Refusable, whole};

impl Movable for SqliteStore {
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

    async fn adopt(&self, page: Page) -> std::result::Result<(), StoreError> {
        self.write(move |transaction| write::adopt(transaction, &page)).await
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

pub(crate) fn marked(connection: &Connection) -> Result<Option<Mark>> {
    let mut statement = connection.prepare_cached("SELECT kind, store FROM mark")?;
    let read = |row: &rusqlite::Row<'_>| {
        let store = row.get::<_, String>(1)?.into();
        Ok(if row.get::<_, String>(0)? == "left" { Mark::Left(store) } else { Mark::Arriving(store) })
    };
    statement.query_row([], read).optional()
}

fn put_mark(transaction: &Transaction<'_>, mark: Option<&Mark>) -> Refusable<(), StoreError> {
    transaction.execute("DELETE FROM mark", [])?;
    let (kind, store) = match mark {
        None => return Ok(Ok(())),
        Some(Mark::Left(to)) => ("left", to),
        Some(Mark::Arriving(from)) => ("arriving", from),
    };
    transaction.execute("INSERT INTO mark (kind, store) VALUES (?, ?)", [kind, store])?;
    Ok(Ok(()))
}

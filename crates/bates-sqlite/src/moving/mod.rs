//! What only a move needs: everything read, everything written as it was elsewhere, and the mark that keeps two
//! stores from serving.

mod read;
mod write;

use bates_core::{
    Kept, Mark, MarkChange, Move, MoveStore, Page, Pinning, Position, Request, ScopeKey, SeriesName,
    SetAside, StoreResult,
};
use rusqlite::{Connection, Result, Row, Transaction, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::pin;
use crate::write::{execute, row, rows, strange};

impl MoveStore for SqliteStore {
    async fn definitions(&self) -> StoreResult<Vec<Pinning>> {
        self.read(definitions)
    }

    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> StoreResult<Vec<SetAside>> {
        self.read(|connection| read::all_aside(connection, &series, after.as_ref(), limit))
    }

    async fn kept(&self, after: Option<Uuid>, limit: usize, bytes: usize) -> StoreResult<Vec<Kept>> {
        self.read(|connection| read::kept(connection, after, limit, bytes))
    }

    async fn requests(&self, after: Option<Request>, limit: usize) -> StoreResult<Vec<Request>> {
        self.read(|connection| read::requests(connection, after.as_ref(), limit))
    }

    async fn adopt(&self, run: Uuid, page: Page) -> StoreResult<bool> {
        self.write(move |transaction| match marked(transaction)? {
            Some(mark) if mark.takes_pages_of(run) => Ok(write::adopt(transaction, &page)?.map(|()| true)),
            _ => Ok(Ok(false)),
        })
        .await
    }

    async fn marked(&self) -> StoreResult<Option<Mark>> {
        self.read(marked)
    }

    async fn mark(&self, expected: Option<Mark>, mark: Option<Mark>) -> StoreResult<bool> {
        self.write(move |transaction| {
            let (found, has_series) = (marked(transaction)?, !definitions(transaction)?.is_empty());
            let change = Mark::change(found.as_ref(), expected.as_ref(), mark.as_ref(), has_series);
            if change == MarkChange::Write {
                write_mark(transaction, mark.as_ref())?;
            }
            Ok(Ok(change != MarkChange::Refused))
        })
        .await
    }
}

fn definitions(connection: &Connection) -> Result<Vec<Pinning>> {
    let read = |row: &Row<'_>| row.get_ref(0)?.as_str()?.parse().map_err(|_| strange(0));
    let names: Vec<SeriesName> = rows(connection, "SELECT name FROM series ORDER BY name", [], read)?;
    names.iter().filter_map(|name| pin::pinned(connection, name).transpose()).collect()
}

pub(crate) fn marked(connection: &Connection) -> Result<Option<Mark>> {
    row(connection, "SELECT kind, store, move, run FROM mark", [], |row| {
        let id = |bytes: Option<[u8; 16]>| bytes.map(Uuid::from_bytes).unwrap_or_default();
        let of = Move { id: id(row.get(2)?), run: id(row.get(3)?), other: row.get::<_, String>(1)?.into() };
        Ok(Mark::new(row.get_ref(0)?.as_str()?, of))
    })
}

pub(crate) fn write_mark(transaction: &Transaction<'_>, mark: Option<&Mark>) -> Result<()> {
    execute(transaction, "DELETE FROM mark", [])?;
    let Some(mark) = mark else { return Ok(()) };
    let Move { id, run, other } = mark.of();
    let sql = "INSERT INTO mark (kind, store, move, run) VALUES (?, ?, ?, ?)";
    execute(transaction, sql, params![mark.kind(), other, id.as_bytes(), run.as_bytes()]).map(drop)
}

//! Moves between stores: reading and writing pages, and the mark that keeps two stores from serving. Each page is found by
//! an index, from the last entry of the page before.

mod write;

use bates_core::{
    DocumentState, Idempotency, MarkChange, Move, MoveMark, MovePage, MoveStore, MovedAdoptions,
    MovedDocument, MovedKey, PinnedSeries, Position, ScopeKey, SeriesName, StoreResult,
};
use rusqlite::{Connection, Result, Row, Transaction, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::outbox::{deliver, list};
use crate::pin;
use crate::write::{execute, invalid_column, position, row, rows, scope_id, to_i64, to_limit};
use crate::writer::CursorUse;

impl MoveStore for SqliteStore {
    async fn definitions(&self) -> StoreResult<Vec<PinnedSeries>> {
        self.read(definitions)
    }

    async fn moved_adoptions(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> StoreResult<Vec<MovedAdoptions>> {
        let sql = "SELECT scope, position FROM adopted
                   WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (scope, position) > (?, ?)
                   ORDER BY scope, position LIMIT ?";
        // Every scope and position follows ("", -1).
        let (scope, last) =
            after.as_ref().map_or(("", -1), |(scope, position)| (scope.as_str(), to_i64(position.value())));
        let values = params![series.as_str(), scope, last, to_limit(limit)];
        let mut page = Vec::new();
        let mut add = |row: &Row<'_>| {
            MovedAdoptions::add(&mut page, row.get_ref(0)?.as_str()?, position(row.get(1)?));
            Ok(())
        };
        self.read(|connection| rows(connection, sql, values, &mut add))?;
        Ok(page)
    }

    async fn moved_documents(
        &self,
        after: Option<Uuid>,
        limit: usize,
        bytes: usize,
    ) -> StoreResult<Vec<MovedDocument>> {
        let columns = list::COLUMNS;
        let sql = format!(
            "SELECT {columns}, body, is_claimed FROM document WHERE document_id > ? ORDER BY document_id LIMIT ?"
        );
        // Every id follows the empty one.
        let after = after.map_or_else(Vec::new, |document_id| document_id.as_bytes().to_vec());
        let read = |row: &Row<'_>| {
            let body = row.get::<_, Option<String>>("body")?.map(Into::into);
            Ok(MovedDocument::new(list::read(row)?, body, row.get("is_claimed")?))
        };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let documents = statement.query_map(params![after, to_limit(limit)], read)?;
            deliver::read_up_to(documents, bytes, |moved| moved.body.as_ref().map_or(0, |body| body.len()))
        })
    }

    async fn moved_keys(&self, after: Option<MovedKey>, limit: usize) -> StoreResult<Vec<MovedKey>> {
        let sql = "SELECT (SELECT name FROM series WHERE id = series_id), scope, caller, key, digest, document_id, position,
                       number, coalesce((SELECT state FROM removed WHERE document_id = idempotency.document_id), pruned_as)
                   FROM idempotency
                   WHERE (series_id, caller, key) > (coalesce((SELECT id FROM series WHERE name = ?), -1), ?, ?)
                   ORDER BY series_id, caller, key LIMIT ?";
        let (series, caller, key) = match &after {
            Some(MovedKey { scope_id, idempotency: Idempotency { caller, key, .. }, .. }) => {
                (Some(scope_id.series.as_str()), &**caller, &**key)
            }
            None => (None, "", ""),
        };
        let values = params![series, caller, key, to_limit(limit)];
        self.read(|connection| rows(connection, sql, values, moved_key))
    }

    async fn import_page(&self, run: Uuid, page: MovePage) -> StoreResult<bool> {
        let write = move |transaction: &Transaction<'_>| match read_mark(transaction)? {
            Some(mark) if mark.accepts_pages_of(run) => write::page(transaction, &page).map(|()| true),
            _ => Ok(false),
        };
        self.send_write(write, CursorUse::Adds).await
    }

    async fn mark(&self) -> StoreResult<Option<MoveMark>> {
        self.read(read_mark)
    }

    async fn change_mark(&self, expected: Option<MoveMark>, mark: Option<MoveMark>) -> StoreResult<bool> {
        self.write(move |transaction| {
            let (stored, has_series) = (read_mark(transaction)?, !definitions(transaction)?.is_empty());
            let change = MoveMark::change(stored.as_ref(), expected.as_ref(), mark.as_ref(), has_series);
            if change == MarkChange::Write {
                write_mark(transaction, mark.as_ref())?;
            }
            Ok(change != MarkChange::Refused)
        })
        .await
    }
}

fn moved_key(row: &Row<'_>) -> Result<MovedKey> {
    let text = |column| row.get::<_, String>(column).map(Into::into);
    Ok(MovedKey {
        scope_id: scope_id(row, 0)?,
        idempotency: Idempotency { caller: text(2)?, key: text(3)?, digest: row.get(4)? },
        document_id: Uuid::from_bytes(row.get(5)?),
        position: position(row.get(6)?),
        number: text(7)?,
        pruned_as: DocumentState::from_name(row.get_ref(8)?.as_str()?).ok_or_else(|| invalid_column(8))?,
    })
}

fn definitions(connection: &Connection) -> Result<Vec<PinnedSeries>> {
    let read = |row: &Row<'_>| row.get_ref(0)?.as_str()?.parse().map_err(|_| invalid_column(0));
    let names: Vec<SeriesName> = rows(connection, "SELECT name FROM series ORDER BY name", [], read)?;
    names.iter().filter_map(|name| pin::pinned(connection, name).transpose()).collect()
}

pub(crate) fn read_mark(connection: &Connection) -> Result<Option<MoveMark>> {
    row(connection, "SELECT kind, store, move, run FROM mark", [], |row| {
        let id = |bytes: Option<[u8; 16]>| bytes.map(Uuid::from_bytes).unwrap_or_default();
        let details =
            Move { id: id(row.get(2)?), run: id(row.get(3)?), other: row.get::<_, String>(1)?.into() };
        Ok(MoveMark::new(row.get_ref(0)?.as_str()?, details))
    })
}

pub(crate) fn write_mark(transaction: &Transaction<'_>, mark: Option<&MoveMark>) -> Result<()> {
    execute(transaction, "DELETE FROM mark", [])?;
    let Some(mark) = mark else { return Ok(()) };
    let Move { id, run, other } = mark.details();
    let sql = "INSERT INTO mark (kind, store, move, run) VALUES (?, ?, ?, ?)";
    execute(transaction, sql, params![mark.kind(), other, id.as_bytes(), run.as_bytes()]).map(drop)
}

//! What only a move needs: pages read and written, and the mark that keeps two stores from serving. An index finds where
//! the page before ended.

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
use crate::write::{bounded, execute, integer, position, row, rows, scope_id, strange};

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
        // No scope is smaller than the empty one, and no position than 0.
        let (scope, behind) =
            after.as_ref().map_or(("", -1), |(scope, position)| (scope.as_str(), integer(position.value())));
        let of = params![series.as_str(), scope, behind, bounded(limit)];
        let mut page = Vec::new();
        let mut add = |row: &Row<'_>| {
            MovedAdoptions::add(&mut page, row.get_ref(0)?.as_str()?, position(row.get(1)?));
            Ok(())
        };
        self.read(|connection| rows(connection, sql, of, &mut add))?;
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
        // No id is smaller than the empty one.
        let after = after.map_or_else(Vec::new, |document_id| document_id.as_bytes().to_vec());
        let read = |row: &Row<'_>| {
            let body = row.get::<_, Option<String>>("body")?.map(Into::into);
            Ok(MovedDocument::new(list::read(row)?, body, row.get("is_claimed")?))
        };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let kept = statement.query_map(params![after, bounded(limit)], read)?;
            deliver::fitting(kept, bytes, |kept| kept.body.as_ref().map_or(0, |body| body.len()))
        })
    }

    async fn moved_keys(&self, after: Option<MovedKey>, limit: usize) -> StoreResult<Vec<MovedKey>> {
        let sql = "SELECT (SELECT name FROM series WHERE id = series_id), scope, caller, key, digest, document_id, position,
                       number, pruned_as
                   FROM idempotency
                   WHERE (series_id, caller, key) > (coalesce((SELECT id FROM series WHERE name = ?), -1), ?, ?)
                   ORDER BY series_id, caller, key LIMIT ?";
        let (series, caller, key) = match &after {
            Some(MovedKey { scope_id, idempotency: Idempotency { caller, key, .. }, .. }) => {
                (Some(scope_id.series.as_str()), &**caller, &**key)
            }
            None => (None, "", ""),
        };
        let of = params![series, caller, key, bounded(limit)];
        self.read(|connection| rows(connection, sql, of, request))
    }

    async fn import_page(&self, run: Uuid, page: MovePage) -> StoreResult<bool> {
        self.write(move |transaction| match marked(transaction)? {
            Some(mark) if mark.accepts_pages_of(run) => Ok(write::adopt(transaction, &page)?.map(|()| true)),
            _ => Ok(Ok(false)),
        })
        .await
    }

    async fn mark(&self) -> StoreResult<Option<MoveMark>> {
        self.read(marked)
    }

    async fn change_mark(&self, expected: Option<MoveMark>, mark: Option<MoveMark>) -> StoreResult<bool> {
        self.write(move |transaction| {
            let (found, has_series) = (marked(transaction)?, !definitions(transaction)?.is_empty());
            let change = MoveMark::change(found.as_ref(), expected.as_ref(), mark.as_ref(), has_series);
            if change == MarkChange::Write {
                write_mark(transaction, mark.as_ref())?;
            }
            Ok(Ok(change != MarkChange::Refused))
        })
        .await
    }
}

fn request(row: &Row<'_>) -> Result<MovedKey> {
    let text = |column| row.get::<_, String>(column).map(Into::into);
    Ok(MovedKey {
        scope_id: scope_id(row, 0)?,
        idempotency: Idempotency { caller: text(2)?, key: text(3)?, digest: row.get(4)? },
        document_id: Uuid::from_bytes(row.get(5)?),
        position: position(row.get(6)?),
        number: text(7)?,
        pruned_as: DocumentState::from_name(row.get_ref(8)?.as_str()?).ok_or_else(|| strange(8))?,
    })
}

fn definitions(connection: &Connection) -> Result<Vec<PinnedSeries>> {
    let read = |row: &Row<'_>| row.get_ref(0)?.as_str()?.parse().map_err(|_| strange(0));
    let names: Vec<SeriesName> = rows(connection, "SELECT name FROM series ORDER BY name", [], read)?;
    names.iter().filter_map(|name| pin::pinned(connection, name).transpose()).collect()
}

pub(crate) fn marked(connection: &Connection) -> Result<Option<MoveMark>> {
    row(connection, "SELECT kind, store, move, run FROM mark", [], |row| {
        let id = |bytes: Option<[u8; 16]>| bytes.map(Uuid::from_bytes).unwrap_or_default();
        let of = Move { id: id(row.get(2)?), run: id(row.get(3)?), other: row.get::<_, String>(1)?.into() };
        Ok(MoveMark::new(row.get_ref(0)?.as_str()?, of))
    })
}

pub(crate) fn write_mark(transaction: &Transaction<'_>, mark: Option<&MoveMark>) -> Result<()> {
    execute(transaction, "DELETE FROM mark", [])?;
    let Some(mark) = mark else { return Ok(()) };
    let Move { id, run, other } = mark.details();
    let sql = "INSERT INTO mark (kind, store, move, run) VALUES (?, ?, ?, ?)";
    execute(transaction, sql, params![mark.kind(), other, id.as_bytes(), run.as_bytes()]).map(drop)
}

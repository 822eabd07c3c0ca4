//! Moves between stores: reading and writing pages, and the mark that keeps two stores from serving. Each page is found by
//! an index, from the last entry of the page before.

mod write;

use bates_core::{
    DocumentState, Idempotency, MarkChange, Move, MoveMark, MovePage, MoveStore, MovedAdoptions,
    MovedDocument, MovedKey, PinnedSeries, Position, ScopeId, ScopeKey, SeriesName, StoreError, StoreResult,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{get_position, to_i64};
use crate::error::{Failure, OpenError};
use crate::outbox::{list, to_limit};
use crate::session::Session;

/// Scope, position and number come from the document as long as it exists.
const KEYS: &str = "
    SELECT k.series, coalesce(d.scope, k.scope), k.caller, k.key, k.digest, k.document_id,
           coalesce(d.position, k.position), coalesce(d.number, k.number), k.pruned_as, d.state
    FROM (
        SELECT * FROM bates.idempotency AS page
        WHERE $1::text IS NULL OR (page.caller, page.series, page.key) > ($1, $2, $3)
        ORDER BY page.caller, page.series, page.key LIMIT $4
    ) AS k
    LEFT JOIN LATERAL (
        SELECT scope, position, number, state FROM bates.document WHERE document_id = k.document_id OFFSET 0
    ) AS d ON true
    ORDER BY k.caller, k.series, k.key";

impl MoveStore for PostgresStore {
    async fn definitions(&self) -> StoreResult<Vec<PinnedSeries>> {
        self.with_session(|session| async move { definitions(&session).await }).await
    }

    async fn moved_adoptions(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> StoreResult<Vec<MovedAdoptions>> {
        let sql = "SELECT scope, position FROM bates.adopted
                   WHERE series = $1 AND (scope, position) > ($2, $3) ORDER BY scope, position LIMIT $4";
        // Every scope and position follows ("", -1).
        let (scope, last) =
            after.as_ref().map_or(("", -1), |(scope, position)| (scope.as_str(), to_i64(position.value())));
        let mut page = Vec::new();
        for row in self.query(sql, &[&series.as_str(), &scope, &last, &to_limit(limit)]).await? {
            MovedAdoptions::add(&mut page, row.get(0), get_position(&row, 1));
        }
        Ok(page)
    }

    async fn moved_documents(
        &self,
        after: Option<Uuid>,
        limit: usize,
        bytes: usize,
    ) -> StoreResult<Vec<MovedDocument>> {
        let sql = format!(
            "SELECT {}, body, is_claimed FROM (
                 SELECT *, sum(coalesce(octet_length(body), 0)) OVER (ORDER BY document_id)
                     - coalesce(octet_length(body), 0) AS before
                 FROM (
                     SELECT * FROM bates.document WHERE $1::uuid IS NULL OR document_id > $1
                     ORDER BY document_id LIMIT $2
                 ) AS page
             ) AS fitting WHERE before < $3 ORDER BY document_id",
            list::COLUMNS
        );
        let rows = self.query(&sql, &[&after, &to_limit(limit), &to_limit(bytes.max(1))]).await?;
        let read = |row: &Row| {
            let body = row.get::<_, Option<&str>>("body").map(Into::into);
            MovedDocument::new(list::read(row), body, row.get("is_claimed"))
        };
        Ok(rows.iter().map(read).collect())
    }

    async fn moved_keys(&self, after: Option<MovedKey>, limit: usize) -> StoreResult<Vec<MovedKey>> {
        let after = after.as_ref();
        let caller = after.map(|after| &*after.idempotency.caller);
        let series = after.map(|after| after.scope_id.series.as_str());
        let key = after.map(|after| &*after.idempotency.key);
        let rows = self.query(KEYS, &[&caller, &series, &key, &to_limit(limit)]).await?;
        rows.iter().map(moved_key).collect()
    }

    async fn import_page(&self, run: Uuid, page: MovePage) -> StoreResult<bool> {
        let (page, node) = (&page, self.node());
        self.with_session(|session| async move {
            session.begin().await?;
            if !is_arriving(&session, run).await? {
                session.batch_execute("ROLLBACK").await?;
                return Ok(false);
            }
            write::page(&session, node, page).await?;
            session.commit().await?;
            Ok(true)
        })
        .await
    }

    async fn mark(&self) -> StoreResult<Option<MoveMark>> {
        self.with_session(|session| async move {
            let mark = read_mark(&session).await?;
            // A store that has stopped for another reason is not moved: commits may be missing.
            if mark.is_none() {
                self.check_may_issue(&session).await?;
            }
            Ok(mark)
        })
        .await
    }

    async fn change_mark(&self, expected: Option<MoveMark>, mark: Option<MoveMark>) -> StoreResult<bool> {
        let (expected, mark) = (expected.as_ref(), mark.as_ref());
        self.with_session(|session| async move {
            session.begin().await?;
            // A store that has stopped for another reason is not left: commits may be missing.
            if expected.is_none() && read_mark(&session).await?.is_none() {
                self.check_may_issue(&session).await?;
            }
            put_mark(&session, expected, mark).await
        })
        .await
    }
}

/// Fails if the document of a key was removed by hand: without the key, the same request would get a second number.
fn moved_key(row: &Row) -> StoreResult<MovedKey> {
    let text = |column: usize| row.get::<_, &str>(column).into();
    let (scope, number) = (row.get::<_, Option<&str>>(1), row.get::<_, Option<&str>>(7));
    let digest = row.get::<_, &[u8]>(4).try_into().ok();
    let state = |column: usize| row.get::<_, Option<&str>>(column).and_then(DocumentState::from_name);
    let pruned_as = state(8).or_else(|| state(9).map(DocumentState::pruned_as));
    let (Some(scope), Some(number), Some(digest), Some(pruned_as)) = (scope, number, digest, pruned_as)
    else {
        return Err(StoreError::KeyLost { series: text(0), key: text(3) });
    };
    Ok(MovedKey {
        scope_id: ScopeId {
            series: row.get::<_, &str>(0).parse().expect("Bates writes only valid series names"),
            scope: ScopeKey::from_store(scope),
        },
        idempotency: Idempotency { caller: text(2), key: text(3), digest },
        document_id: row.get(5),
        position: get_position(row, 6),
        number: number.into(),
        pruned_as,
    })
}

async fn definitions(session: &Session) -> Result<Vec<PinnedSeries>, Failure> {
    let rows = session.query("SELECT name FROM bates.series ORDER BY name", &[]).await?;
    let mut definitions = Vec::with_capacity(rows.len());
    for row in rows {
        let name: SeriesName = row.get::<_, &str>(0).parse().expect("Bates writes only valid series names");
        definitions.extend(crate::read::pinned(session, &name).await?);
    }
    Ok(definitions)
}

async fn read_mark(session: &Session) -> Result<Option<MoveMark>, Failure> {
    let sql = "SELECT mark, mark_store, mark_move, mark_run FROM bates.store";
    let rows = session.query(sql, &[]).await?;
    let row = rows.first().ok_or(Failure::Refused(OpenError::Emptied))?;
    let Some(kind) = row.get::<_, Option<&str>>(0) else { return Ok(None) };
    let details = Move {
        id: row.get::<_, Option<Uuid>>(2).unwrap_or_default(),
        run: row.get::<_, Option<Uuid>>(3).unwrap_or_default(),
        other: row.get::<_, Option<&str>>(1).unwrap_or_default().into(),
    };
    Ok(Some(MoveMark::new(kind, details)))
}

/// Whether the store takes pages of a run. Locks the mark until the transaction ends, so that the store is not served before.
async fn is_arriving(session: &Session, run: Uuid) -> Result<bool, Failure> {
    let sql = "SELECT FROM bates.store WHERE mark = 'arriving' AND mark_run = $1 FOR SHARE";
    Ok(!session.query(sql, &[&run]).await?.is_empty())
}

/// Refuses writes of documents, pools, audit records and client leases in a store that was left: the other store would miss
/// them. Called in the transaction of the write: a mark waits for that transaction, or is seen here.
pub(crate) async fn check_not_left(session: &Session) -> Result<(), Failure> {
    let rows = session.query("SELECT stopped FROM bates.store WHERE mark = 'left'", &[]).await?;
    match rows.first() {
        None => Ok(()),
        Some(row) => {
            let reason = row.get::<_, Option<&str>>(0).unwrap_or("this store was left");
            Err(StoreError::Poisoned(reason.into()).into())
        }
    }
}

/// Refuses writes that a move must not miss, such as a raised cursor, in a store that was left or is being filled. Locks the
/// row of the store until the transaction ends, so that a mark waits for it and the move copies what it wrote.
///
/// Locks are taken in one order everywhere: the table of commits, the row of the store, series, cursors.
pub(crate) async fn lock_unmarked(session: &Session) -> Result<(), Failure> {
    let rows = session.query("SELECT mark, stopped FROM bates.store FOR NO KEY UPDATE", &[]).await?;
    let row = rows.first().ok_or(Failure::Refused(OpenError::Emptied))?;
    match (row.get::<_, Option<&str>>(0), row.get::<_, Option<&str>>(1)) {
        (None, _) => Ok(()),
        (Some(mark), stopped) => Err(StoreError::Poisoned(stopped.unwrap_or(mark).into()).into()),
    }
}

/// Invariant: when the mark is committed, every batch under way has seen it. The statement with which a batch writes
/// `last_commit` also reads whether the store is stopped, so the lock on that table waits for all that read too early. The
/// locks for documents, pools, audit records and client leases do the same.
async fn put_mark(
    session: &Session,
    expected: Option<&MoveMark>,
    mark: Option<&MoveMark>,
) -> Result<bool, Failure> {
    let lock = "LOCK TABLE bates.last_commit, bates.document, bates.pool, bates.audit, bates.client_lease
                IN EXCLUSIVE MODE";
    session.batch_execute(lock).await?;
    let stored = read_mark(session).await?;
    let has_series = !session.query("SELECT FROM bates.series LIMIT 1", &[]).await?.is_empty();
    let change = MoveMark::change(stored.as_ref(), expected, mark, has_series);
    if change == MarkChange::Write {
        write_mark(session, mark).await?;
    }
    session.commit().await?;
    Ok(change != MarkChange::Refused)
}

pub(crate) async fn write_mark(session: &Session, mark: Option<&MoveMark>) -> Result<(), Failure> {
    let sql = "UPDATE bates.store SET mark = $1, mark_store = $2, mark_move = $3, mark_run = $4, stopped = $5
               RETURNING true";
    let stopped = mark.map(|mark| match mark {
        MoveMark::Left(Move { other, .. }) => {
            format!("this store was left for {other}, where numbering continues: use that store")
        }
        MoveMark::Arriving(Move { other, .. }) => {
            format!("this store is being filled from {other}: run `bates move-store` again to finish")
        }
    });
    let (kind, details) = (mark.map(MoveMark::kind), mark.map(MoveMark::details));
    let store = details.map(|details| &*details.other);
    let (id, run) = (details.map(|details| details.id), details.map(|details| details.run));
    let rows = session.query(sql, &[&kind, &store, &id, &run, &stopped]).await?;
    if rows.is_empty() { Err(Failure::Refused(OpenError::Emptied)) } else { Ok(()) }
}

//! Shared pools in the shared store: their rows are loaded, changed by the rules of the ledger, and written. `batch` grants positions to them.
//!
//! Must never move a cursor. Invariant: the pool is locked before it is written, and a position leaves `pooled` only if
//! it was popped, or in the transaction that records it as lost.

use bates_core::ledger::{PoolBefore, PoolChange, PooledRange, PooledState, RowBounds};
use bates_core::{
    MissingRange, Operation, Pool, PoolSettlement, PoolStore, RenewRequest, ScopeId, ScopeKey, SeriesName,
    ServerIdentity, StoreError, StoreResult,
};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{self, BatchOrigin, get_u64, to_i64};
use crate::error::Failure;
use crate::moving::check_not_left;
use crate::operation;
use crate::outbox::to_limit;
use crate::session::Session;

const SELECT: &str = "SELECT epoch, server_run, server_replication, scope FROM bates.pool WHERE series = $1";

impl PoolStore for PostgresStore {
    async fn pool(&self, scope_id: ScopeId, operation: Option<Operation>) -> StoreResult<Pool> {
        let (scope_id, operation) = (&scope_id, operation.as_ref());
        self.with_session(|session| async move {
            if let Some(pool) = find(&session, scope_id, "").await? {
                return Ok(pool);
            }
            let create = async {
                let (pool, is_new) = lock_or_create(&session, scope_id).await?;
                check_not_left(&session).await?;
                operation::append(&session, operation.filter(|_| is_new)).await?;
                Ok(pool)
            };
            session.transact(create).await
        })
        .await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>> {
        let sql = format!("{SELECT} AND ($2 OR scope > $3) ORDER BY scope LIMIT $4");
        let (series, is_first) = (series.as_str(), after.is_none());
        let after = after.as_ref().map_or("", ScopeKey::as_str);
        let rows = self.query(&sql, &[&series, &is_first, &after, &to_limit(limit)]).await?;
        Ok(rows.iter().map(|row| (ScopeKey::from_store(row.get(3)), read(row))).collect())
    }

    /// If the answer to a commit is lost, the call is repeated, finds the epoch raised, and returns `None`, as if another node
    /// had raised it. That is safe: no list is created for the new epoch, and the next renewal ends it.
    async fn renew_pool(&self, scope_id: ScopeId, renewal: RenewRequest) -> StoreResult<Option<Pool>> {
        let (scope_id, renewal) = (&scope_id, &renewal);
        self.with_session(|session| async move {
            let renew = async {
                // A stopped store begins no epoch: the pool may belong to another store by now.
                self.check_may_issue(&session).await?;
                let renewed = renew(&session, scope_id, renewal).await?;
                check_not_left(&session).await?;
                Ok(renewed)
            };
            session.transact(renew).await
        })
        .await
    }

    async fn settle_pool(&self, scope_id: ScopeId, settlement: PoolSettlement) -> StoreResult<()> {
        let (scope_id, settlement) = (&scope_id, &settlement);
        self.with_session(|session| async move {
            let settle = async {
                let change = load(&session, scope_id, settlement.row_bounds()).await?.settle(settlement);
                apply(&session, scope_id, &change).await?;
                check_not_left(&session).await
            };
            session.transact(settle).await
        })
        .await
    }
}

pub(crate) async fn forget_server(session: &Session, scope_id: &ScopeId) -> Result<(), Error> {
    let sql =
        "UPDATE bates.pool SET server_run = NULL, server_replication = NULL WHERE series = $1 AND scope = $2";
    session.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await.map(drop)
}

fn read(row: &Row) -> Pool {
    Pool { epoch: get_u64(row, 0), server: ServerIdentity::from_ids(row.get(1), row.get(2)) }
}

async fn find(session: &Session, scope_id: &ScopeId, lock: &str) -> Result<Option<Pool>, Error> {
    let sql = format!("{SELECT} AND scope = $2 {lock}");
    let rows = session.query(&sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
    Ok(rows.first().map(read))
}

/// Locks a pool, and creates it if it is missing.
/// The pool, locked, and whether it is new.
async fn lock_or_create(session: &Session, scope_id: &ScopeId) -> Result<(Pool, bool), Failure> {
    let insert = "INSERT INTO bates.pool (series, scope) SELECT name, $2 FROM bates.series WHERE name = $1
                ON CONFLICT DO NOTHING RETURNING true";
    let created = session.query(insert, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
    let unknown = || StoreError::UnknownSeries(scope_id.series.as_str().into());
    let pool = find(session, scope_id, "FOR UPDATE").await?.ok_or_else(unknown)?;
    Ok((pool, !created.is_empty()))
}

async fn renew(
    session: &Session,
    scope_id: &ScopeId,
    renewal: &RenewRequest,
) -> Result<Option<Pool>, Failure> {
    let Some(change) = load(session, scope_id, ALL).await?.renew(renewal.clone()) else { return Ok(None) };
    let sql = "UPDATE bates.pool SET epoch = $3, server_run = $4, server_replication = $5
               WHERE series = $1 AND scope = $2";
    let server = change.pool.server.as_ref();
    let (run, replication) = (server.map(|server| &*server.run), server.map(|server| &*server.replication));
    let (series, scope, epoch) =
        (scope_id.series.as_str(), scope_id.scope.as_str(), to_i64(change.pool.epoch));
    session.query(sql, &[&series, &scope, &epoch, &run, &replication]).await?;
    apply(session, scope_id, &change).await?;
    Ok(Some(change.pool))
}

const ALL: RowBounds = RowBounds { from: 0, to: i64::MAX as u64, below: 0 };

async fn load(
    session: &Session,
    scope_id: &ScopeId,
    bounds: RowBounds,
) -> Result<PoolBefore<BatchOrigin>, Failure> {
    let (pool, _) = lock_or_create(session, scope_id).await?;
    let sql = "SELECT first, last, is_pushed, node, batch FROM bates.pooled WHERE series = $1 AND scope = $2
               AND (first < $3 AND last >= $4 OR first < $5) FOR UPDATE";
    let [from, to, below] = [bounds.from, bounds.to, bounds.below].map(to_i64);
    let rows = session
        .query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str(), &to, &from, &below])
        .await?;
    let read = |row: &Row| {
        let range = sql::range(row, 0)?;
        let state = if row.get(2) { PooledState::Pushed } else { PooledState::Granted };
        Some(PooledRange { range, state, holder: BatchOrigin { node: row.get(3), batch: row.get(4) } })
    };
    Ok(PoolBefore { pool, rows: rows.iter().filter_map(read).collect(), held_from: None })
}

async fn apply(
    session: &Session,
    scope_id: &ScopeId,
    change: &PoolChange<BatchOrigin>,
) -> Result<(), Failure> {
    let remove = "DELETE FROM bates.pooled WHERE series = $1 AND scope = $2 AND first = ANY ($3)";
    let insert = "INSERT INTO bates.pooled (series, scope, first, last, is_pushed, node, batch)
                  SELECT $1, $2, * FROM UNNEST($3, $4, $5, $6, $7)";
    let (series, scope, rows) = (scope_id.series.as_str(), scope_id.scope.as_str(), &change.added);
    if !change.removed.is_empty() {
        let removed: Vec<i64> = change.removed.iter().copied().map(to_i64).collect();
        session.query(remove, &[&series, &scope, &removed]).await?;
    }
    if !rows.is_empty() {
        let (firsts, lasts) = sql::bounds(rows.iter().map(|row| row.range));
        let pushed: Vec<bool> = rows.iter().map(|row| row.state == PooledState::Pushed).collect();
        let (nodes, batches): (Vec<Uuid>, Vec<Uuid>) =
            rows.iter().map(|row| (row.holder.node, row.holder.batch)).unzip();
        session.query(insert, &[&series, &scope, &firsts, &lasts, &pushed, &nodes, &batches]).await?;
    }
    let lost: Vec<(&ScopeId, MissingRange)> =
        change.lost.iter().map(|missing| (scope_id, *missing)).collect();
    Ok(sql::write_lost(session, &lost).await?)
}

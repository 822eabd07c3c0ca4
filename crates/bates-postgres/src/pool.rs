//! Shared pools in the shared store: loaded, decided by the ledger, and written. Positions are granted to them with all
//! others, in `batch`.
//!
//! Must never move a cursor. Invariant: the pool is locked before it is written, and a position leaves `pooled` only in
//! the transaction that writes what became of it.

use bates_core::ledger::{PoolBefore, PoolChange, PoolState, PooledRange, RowBounds};
use bates_core::{
    MissingRange, Pool, PoolSettlement, PoolStore, RenewRequest, ScopeId, ScopeKey, SeriesName,
    ServerIdentity, StoreError, StoreResult,
};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{self, integer, whole};
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::outbox::bounded;
use crate::session::Session;

const SELECT: &str = "SELECT epoch, server_run, server_replication, scope FROM bates.pool WHERE series = $1";

impl PoolStore for PostgresStore {
    async fn pool(&self, scope_id: ScopeId) -> StoreResult<Pool> {
        let scope_id = &scope_id;
        self.done(|session| async move {
            if let Some(pool) = find(&session, scope_id, "").await? {
                return Ok(pool);
            }
            let made = async {
                let pool = locked(&session, scope_id).await?;
                check_not_left(&session).await?;
                Ok(pool)
            };
            session.transact(made).await
        })
        .await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>> {
        let sql = &format!("{SELECT} AND ($2 OR scope > $3) ORDER BY scope LIMIT $4");
        let (series, is_first) = (series.as_str(), after.is_none());
        let after = after.as_ref().map_or("", ScopeKey::as_str);
        self.done(|session| async move {
            let rows = session.query(sql, &[&series, &is_first, &after, &bounded(limit)]).await?;
            Ok(rows.iter().map(|row| (ScopeKey::from_store(row.get(3)), read(row))).collect())
        })
        .await
    }

    /// A try that was committed but not answered is made again and finds the epoch ended, so it answers `None` as if
    /// another node had ended it. That is safe: no list is made for that epoch, and the next look at the pool ends it.
    async fn renew_pool(&self, scope_id: ScopeId, renewal: RenewRequest) -> StoreResult<Option<Pool>> {
        let (scope_id, renewal) = (&scope_id, &renewal);
        self.done(|session| async move {
            let renewed = async {
                // A stopped store begins no epoch: the pool may be another store's by now.
                self.ask(&session).await?;
                let renewed = renew(&session, scope_id, renewal).await?;
                check_not_left(&session).await?;
                Ok(renewed)
            };
            session.transact(renewed).await
        })
        .await
    }

    async fn settle_pool(&self, scope_id: ScopeId, settling: PoolSettlement) -> StoreResult<()> {
        let (scope_id, settling) = (&scope_id, &settling);
        self.done(|session| async move {
            let settled = async {
                let change = load(&session, scope_id, settling.row_bounds()).await?.settle(settling);
                apply(&session, scope_id, &change).await?;
                check_not_left(&session).await
            };
            session.transact(settled).await
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
    Pool { epoch: whole(row, 0), server: ServerIdentity::known(row.get(1), row.get(2)) }
}

async fn find(session: &Session, scope_id: &ScopeId, lock: &str) -> Result<Option<Pool>, Error> {
    let sql = format!("{SELECT} AND scope = $2 {lock}");
    let rows = session.query(&sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
    Ok(rows.first().map(read))
}

/// Makes a missing pool.
async fn locked(session: &Session, scope_id: &ScopeId) -> Result<Pool, Failed> {
    let make = "INSERT INTO bates.pool (series, scope) SELECT name, $2 FROM bates.series WHERE name = $1
                ON CONFLICT DO NOTHING";
    session.query(make, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
    let unknown = || StoreError::UnknownSeries(scope_id.series.as_str().into());
    Ok(find(session, scope_id, "FOR UPDATE").await?.ok_or_else(unknown)?)
}

async fn renew(
    session: &Session,
    scope_id: &ScopeId,
    renewal: &RenewRequest,
) -> Result<Option<Pool>, Failed> {
    let Some(change) = load(session, scope_id, ALL).await?.renew(renewal.clone()) else { return Ok(None) };
    let sql = "UPDATE bates.pool SET epoch = $3, server_run = $4, server_replication = $5
               WHERE series = $1 AND scope = $2";
    let server = change.pool.server.as_ref();
    let (run, replication) = (server.map(|server| &*server.run), server.map(|server| &*server.replication));
    let (series, scope, epoch) =
        (scope_id.series.as_str(), scope_id.scope.as_str(), integer(change.pool.epoch));
    session.query(sql, &[&series, &scope, &epoch, &run, &replication]).await?;
    apply(session, scope_id, &change).await?;
    Ok(Some(change.pool))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Granted {
    node: Uuid,
    batch: Uuid,
}

const ALL: RowBounds = RowBounds { from: 0, to: i64::MAX as u64, below: 0 };

async fn load(
    session: &Session,
    scope_id: &ScopeId,
    needed: RowBounds,
) -> Result<PoolBefore<Granted>, Failed> {
    let pool = locked(session, scope_id).await?;
    let sql = "SELECT first, last, is_pushed, node, batch FROM bates.pooled WHERE series = $1 AND scope = $2
               AND (first < $3 AND last >= $4 OR first < $5) FOR UPDATE";
    let [from, to, below] = [needed.from, needed.to, needed.below].map(integer);
    let rows = session
        .query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str(), &to, &from, &below])
        .await?;
    let read = |row: &Row| {
        let range = sql::range(row, 0)?;
        let state = if row.get(2) { PoolState::Pushed } else { PoolState::Granted };
        Some(PooledRange { range, state, holder: Granted { node: row.get(3), batch: row.get(4) } })
    };
    Ok(PoolBefore { pool, rows: rows.iter().filter_map(read).collect(), held_from: None })
}

async fn apply(session: &Session, scope_id: &ScopeId, change: &PoolChange<Granted>) -> Result<(), Failed> {
    let remove = "DELETE FROM bates.pooled WHERE series = $1 AND scope = $2 AND first = ANY ($3)";
    let insert = "INSERT INTO bates.pooled (series, scope, first, last, is_pushed, node, batch)
                  SELECT $1, $2, * FROM UNNEST($3, $4, $5, $6, $7)";
    let (series, scope, rows) = (scope_id.series.as_str(), scope_id.scope.as_str(), &change.added);
    if !change.removed.is_empty() {
        let removed: Vec<i64> = change.removed.iter().copied().map(integer).collect();
        session.query(remove, &[&series, &scope, &removed]).await?;
    }
    if !rows.is_empty() {
        let (firsts, lasts) = sql::bounds(rows.iter().map(|row| row.range));
        let pushed: Vec<bool> = rows.iter().map(|row| row.state == PoolState::Pushed).collect();
        let (nodes, batches): (Vec<Uuid>, Vec<Uuid>) =
            rows.iter().map(|row| (row.holder.node, row.holder.batch)).unzip();
        session.query(insert, &[&series, &scope, &firsts, &lasts, &pushed, &nodes, &batches]).await?;
    }
    let lost: Vec<(&ScopeId, MissingRange)> =
        change.lost.iter().map(|missing| (scope_id, *missing)).collect();
    Ok(sql::write_lost(session, &lost).await?)
}

//! Shared pools in the embedded store: their rows are loaded, changed by the rules of the ledger, and written.
//!
//! Must never move a cursor. Invariant: a position leaves `pooled` only if it was popped, or in the
//! transaction that records it as lost.

use bates_core::ledger::{PoolBefore, PoolChange, PooledRange, PooledState, RowBounds};
use bates_core::{
    Operation, Pool, PoolSettlement, PoolStore, PositionRange, RenewRequest, ScopeId, ScopeKey, SeriesName,
    ServerIdentity, StoreResult,
};
use rusqlite::{Connection, Result, Row, Transaction, params};

use crate::SqliteStore;
use crate::error::WriteResult;
use crate::held::{self, HeldFrom};
use crate::operation;
use crate::write::{self, ScopeRef, execute, invalid_column, to_i64, to_limit, to_u64};

const SELECT: &str = "SELECT epoch, server_run, server_replication, scope FROM pool
    WHERE series_id = (SELECT id FROM series WHERE name = ?)";

impl PoolStore for SqliteStore {
    async fn pool(&self, scope_id: ScopeId, operation: Option<Operation>) -> StoreResult<Pool> {
        if let Some(pool) = self.read(|connection| find(connection, &scope_id))? {
            return Ok(pool);
        }
        self.write(move |transaction| {
            let is_new = find(transaction, &scope_id)?.is_none();
            let pool = find_or_create(transaction, &scope_id)?;
            operation::append(transaction, operation.as_ref().filter(|_| is_new))?;
            Ok(pool)
        })
        .await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>> {
        let sql = format!("{SELECT} AND (? OR scope > ?) ORDER BY scope LIMIT ?");
        let after_key = after.as_ref().map_or("", ScopeKey::as_str);
        let values = params![series.as_str(), after.is_none(), after_key, to_limit(limit)];
        let read = |row: &Row<'_>| Ok((ScopeKey::from_store(row.get_ref(3)?.as_str()?), read(row)?));
        self.read(|connection| write::rows(connection, &sql, values, read))
    }

    async fn renew_pool(&self, scope_id: ScopeId, renewal: RenewRequest) -> StoreResult<Option<Pool>> {
        self.write(move |transaction| renew(transaction, &scope_id, &renewal)).await
    }

    async fn settle_pool(&self, scope_id: ScopeId, settlement: PoolSettlement) -> StoreResult<()> {
        self.write(move |transaction| settle(transaction, &scope_id, &settlement)).await
    }
}

fn name(state: PooledState) -> &'static str {
    match state {
        PooledState::Granted => "granted",
        PooledState::Pushed => "pushed",
        PooledState::Popped => "popped",
    }
}

pub(crate) fn put(transaction: &Transaction<'_>, at: ScopeRef<'_>, row: &PooledRange<i64>) -> Result<()> {
    let sql = "INSERT INTO pooled (series_id, scope, first, last, state, run) VALUES (?, ?, ?, ?, ?, ?)";
    let (first, last) = write::bounds(row.range);
    let values = params![at.series_id, at.scope, first, last, name(row.state), row.holder];
    execute(transaction, sql, values).map(drop)
}

/// Records positions that were popped while the process holds others below them. Adjacent ranges are merged, and rows below
/// the first held position are deleted, so that there are never more rows than held ranges.
pub(crate) fn put_popped(
    transaction: &Transaction<'_>,
    at: ScopeRef<'_>,
    range: PositionRange,
    held: HeldFrom,
) -> Result<()> {
    let forget = "DELETE FROM pooled WHERE series_id = ? AND scope = ? AND state = 'popped' AND last < ?";
    execute(transaction, forget, params![at.series_id, at.scope, to_i64(held.from)])?;
    let join =
        "UPDATE pooled SET last = ? WHERE series_id = ? AND scope = ? AND state = 'popped' AND last = ?";
    let (first, last) = write::bounds(range);
    if execute(transaction, join, params![last, at.series_id, at.scope, first - 1])? > 0 {
        return Ok(());
    }
    put(transaction, at, &PooledRange { range, state: PooledState::Popped, holder: held.run })
}

pub(crate) fn forget_server(transaction: &Transaction<'_>, at: ScopeRef<'_>) -> Result<()> {
    let sql =
        "UPDATE pool SET server_run = NULL, server_replication = NULL WHERE series_id = ? AND scope = ?";
    execute(transaction, sql, params![at.series_id, at.scope]).map(drop)
}

fn read(row: &Row<'_>) -> Result<Pool> {
    let (run, replication) = (row.get_ref(1)?.as_str_or_null()?, row.get_ref(2)?.as_str_or_null()?);
    Ok(Pool { epoch: to_u64(row.get(0)?), server: ServerIdentity::from_ids(run, replication) })
}

fn find(connection: &Connection, scope_id: &ScopeId) -> Result<Option<Pool>> {
    let values = params![scope_id.series.as_str(), scope_id.scope.as_str()];
    write::row(connection, &format!("{SELECT} AND scope = ?"), values, read)
}

fn find_or_create(transaction: &Transaction<'_>, scope_id: &ScopeId) -> WriteResult<Pool> {
    let sql = "INSERT OR IGNORE INTO pool (series_id, scope) SELECT id, ? FROM series WHERE name = ?";
    execute(transaction, sql, params![scope_id.scope.as_str(), scope_id.series.as_str()])?;
    Ok(find(transaction, scope_id)?.ok_or_else(|| write::unknown(&scope_id.series))?)
}

fn renew(
    transaction: &Transaction<'_>,
    scope_id: &ScopeId,
    renewal: &RenewRequest,
) -> WriteResult<Option<Pool>> {
    let at = write::scope_ref(transaction, scope_id)?;
    find_or_create(transaction, scope_id)?;
    let Some(change) = load(transaction, at, scope_id, ALL)?.renew(renewal.clone()) else {
        return Ok(None);
    };
    let server = change.pool.server.as_ref();
    let (run, replication) = (server.map(|server| &server.run), server.map(|server| &server.replication));
    let sql =
        "UPDATE pool SET epoch = ?, server_run = ?, server_replication = ? WHERE series_id = ? AND scope = ?";
    let epoch = to_i64(change.pool.epoch);
    execute(transaction, sql, params![epoch, run, replication, at.series_id, at.scope])?;
    apply(transaction, at, &change)?;
    Ok(Some(change.pool))
}

fn settle(transaction: &Transaction<'_>, scope_id: &ScopeId, settlement: &PoolSettlement) -> WriteResult<()> {
    let at = write::scope_ref(transaction, scope_id)?;
    let change = load(transaction, at, scope_id, settlement.row_bounds())?.settle(settlement);
    Ok(apply(transaction, at, &change)?)
}

const ALL: RowBounds = RowBounds { from: 0, to: i64::MAX as u64, below: 0 };

fn load(
    transaction: &Transaction<'_>,
    at: ScopeRef<'_>,
    scope_id: &ScopeId,
    bounds: RowBounds,
) -> Result<PoolBefore<i64>> {
    let read = |row: &Row<'_>| {
        let state = match row.get_ref(2)?.as_str()? {
            "granted" => PooledState::Granted,
            "pushed" => PooledState::Pushed,
            _ => PooledState::Popped,
        };
        let range = write::range(row, 0)?.ok_or_else(|| invalid_column(0))?;
        Ok(PooledRange { range, state, holder: row.get(3)? })
    };
    let RowBounds { from, to, below } = bounds;
    let pooled = "SELECT first, last, state, run FROM pooled WHERE series_id = ? AND scope = ?
                  AND (first < ? AND last >= ? OR first < ? OR state = 'popped')";
    let values = params![at.series_id, at.scope, to_i64(to), to_i64(from), to_i64(below)];
    let held_from = "SELECT held_from FROM cursor WHERE series_id = ? AND scope = ?";
    let held_from: Option<Option<i64>> =
        write::row(transaction, held_from, params![at.series_id, at.scope], |row| row.get(0))?;
    Ok(PoolBefore {
        pool: find(transaction, scope_id)?.unwrap_or_default(),
        rows: write::rows(transaction, pooled, values, read)?,
        held_from: held_from.flatten().map(to_u64),
    })
}

fn apply(transaction: &Transaction<'_>, at: ScopeRef<'_>, change: &PoolChange<i64>) -> Result<()> {
    let sql = "DELETE FROM pooled WHERE series_id = ? AND scope = ? AND first = ?";
    for first in &change.removed {
        execute(transaction, sql, params![at.series_id, at.scope, to_i64(*first)])?;
    }
    change.added.iter().try_for_each(|row| put(transaction, at, row))?;
    change.lost.iter().try_for_each(|lost| held::record_lost(transaction, at, lost.range, lost.reason))
}

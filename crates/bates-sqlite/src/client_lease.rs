//! Client leases in the embedded store. Must never move a cursor.

use bates_core::{
    ClientLease, ClientLeaseFilter, LeaseEnd, LeaseOwner, LeaseStore, PositionRange, SeriesName, StoreResult,
    UsedLeases,
};
use jiff::Timestamp;
use rusqlite::{Connection, Params, Result, Row, Transaction, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::error::WriteResult;
use crate::held;
use crate::listed::glob_patterns;
use crate::write::{self, ScopeRef, execute, invalid_column, to_limit};

impl LeaseStore for SqliteStore {
    async fn put_client_lease(&self, lease: ClientLease, used: UsedLeases) -> StoreResult<()> {
        self.write(move |transaction| put(transaction, &lease, &used)).await
    }

    async fn end_client_lease(
        &self,
        id: Uuid,
        unused: Vec<PositionRange>,
        owner: LeaseOwner,
    ) -> StoreResult<LeaseEnd> {
        self.write(move |transaction| Ok(end(transaction, id, &unused, &owner)?)).await
    }

    async fn client_leases(
        &self,
        filter: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<ClientLease>> {
        let condition = "id IN (
            SELECT DISTINCT id FROM client_lease
            WHERE (?1 IS NULL OR series_id = (SELECT id FROM series WHERE name = ?1)) AND (?2 IS NULL OR id > ?2)
                AND series_id IN (SELECT series.id FROM series, json_each(?4) WHERE series.name GLOB value)
            ORDER BY id LIMIT ?3)";
        let (series, after) =
            (filter.series.as_ref().map(SeriesName::as_str), after.as_ref().map(Uuid::as_bytes));
        let among = glob_patterns(&filter.among);
        self.read(|connection| leases(connection, condition, params![series, after, to_limit(limit), among]))
    }
}

pub(crate) fn put(transaction: &Transaction<'_>, lease: &ClientLease, used: &UsedLeases) -> WriteResult<()> {
    let ScopeRef { series_id, scope } = write::scope_ref(transaction, &lease.scope_id)?;
    for id in &used.ids {
        let sql = "DELETE FROM client_lease WHERE id = ?1 AND series_id = ?2 AND scope = ?3
                   AND (?4 IS NULL OR caller = ?4)";
        execute(transaction, sql, params![id.as_bytes(), series_id, scope, used.owner.caller()])?;
    }
    let sql = "INSERT OR IGNORE INTO client_lease (id, series_id, scope, first, last, caller, leased_at)
               VALUES (?, ?, ?, ?, ?, ?, ?)";
    let (id, at) = (lease.id.as_bytes(), lease.at.as_millisecond());
    for range in &lease.ranges {
        let (first, last) = write::bounds(*range);
        execute(transaction, sql, params![id, series_id, scope, first, last, lease.caller, at])?;
    }
    Ok(())
}

/// Invariant: positions leave the table in the transaction that records the lost ones among them.
fn end(
    transaction: &Transaction<'_>,
    id: Uuid,
    unused: &[PositionRange],
    owner: &LeaseOwner,
) -> Result<LeaseEnd> {
    let lease = leases(transaction, "id = ?", [id.as_bytes()])?.pop();
    let ended = LeaseEnd::decide(lease, unused, owner);
    if let Some((scope_id, missing)) = ended.missing()
        && let Some(at) = write::find_scope(transaction, scope_id)?
    {
        execute(transaction, "DELETE FROM client_lease WHERE id = ?", [id.as_bytes()])?;
        missing.iter().try_for_each(|lost| held::record_lost(transaction, at, lost.range, lost.reason))?;
    }
    Ok(ended)
}

/// The leases that match a condition, each with all its ranges.
fn leases(connection: &Connection, condition: &str, values: impl Params) -> Result<Vec<ClientLease>> {
    let sql = format!(
        "SELECT first, last, id, (SELECT name FROM series WHERE series.id = series_id), scope, caller, leased_at
         FROM client_lease WHERE {condition} ORDER BY id, first"
    );
    let mut leases: Vec<ClientLease> = Vec::new();
    for row in write::rows(connection, &sql, values, read)? {
        match leases.last_mut() {
            Some(last) if last.id == row.id => last.ranges.extend(row.ranges),
            _ => leases.push(row),
        }
    }
    Ok(leases)
}

fn read(row: &Row<'_>) -> Result<ClientLease> {
    Ok(ClientLease {
        id: Uuid::from_bytes(row.get(2)?),
        scope_id: write::scope_id(row, 3)?,
        ranges: vec![write::range(row, 0)?.ok_or_else(|| invalid_column(0))?],
        caller: row.get::<_, String>(5)?.into(),
        at: Timestamp::from_millisecond(row.get(6)?).map_err(|_| invalid_column(6))?,
    })
}

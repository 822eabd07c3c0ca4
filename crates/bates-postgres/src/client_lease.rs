//! Client leases in the shared store. Must never move a cursor. Writing the same lease twice is safe.

use bates_core::{
    ClientLease, ClientLeaseFilter, LeaseEnd, LeaseOwner, LeaseStore, MissingRange, PositionRange, ScopeId,
    ScopeKey, SeriesName, StoreError, StoreResult, UsedLeases,
};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql;
use crate::error::Failure;
use crate::listed::like_patterns;
use crate::moving::check_not_left;
use crate::outbox::to_limit;
use crate::parameter::Parameter;
use crate::session::Session;

impl LeaseStore for PostgresStore {
    /// All statements are sent together: one round trip, and one to commit.
    async fn put_client_lease(&self, lease: ClientLease, used: UsedLeases) -> StoreResult<()> {
        let (lease, used) = (&lease, &used);
        self.with_session(|session| async move {
            let (began, ended, put, not_left) = tokio::join!(biased;
                session.begin(), end_used(&session, &lease.scope_id, used), put(&session, lease), check_not_left(&session));
            began?;
            ended?;
            put?;
            not_left?;
            session.commit().await
        })
        .await
    }

    /// An attempt that was committed but not answered is repeated, and then finds no lease.
    async fn end_client_lease(
        &self,
        id: Uuid,
        unused: Vec<PositionRange>,
        owner: LeaseOwner,
    ) -> StoreResult<LeaseEnd> {
        let (unused, owner) = (&unused, &owner);
        self.with_session(|session| async move { session.transact(end(&session, id, unused, owner)).await })
            .await
    }

    async fn client_leases(
        &self,
        filter: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<ClientLease>> {
        let condition = "id IN (
            SELECT DISTINCT id FROM bates.client_lease
            WHERE ($1::text IS NULL OR series = $1) AND ($2::uuid IS NULL OR id > $2)
                AND series LIKE ANY ($4)
            ORDER BY id LIMIT $3) ORDER BY id, first";
        let (series, among) = (filter.series.as_ref().map(SeriesName::as_str), &like_patterns(&filter.among));
        self.with_session(|session| async move {
            leases(&session, condition, &[&series, &after, &to_limit(limit), among]).await
        })
        .await
    }
}

async fn end_used(session: &Session, scope_id: &ScopeId, used: &UsedLeases) -> Result<(), Failure> {
    let sql = "DELETE FROM bates.client_lease WHERE id = ANY ($1) AND series = $2 AND scope = $3
               AND ($4::text IS NULL OR caller = $4)";
    let UsedLeases { ids, owner } = used;
    if !ids.is_empty() {
        let (series, scope) = (scope_id.series.as_str(), scope_id.scope.as_str());
        session.query(sql, &[ids, &series, &scope, &owner.caller()]).await?;
    }
    Ok(())
}

pub(crate) async fn put(session: &Session, lease: &ClientLease) -> Result<(), Failure> {
    let sql = "INSERT INTO bates.client_lease (id, series, scope, first, last, caller, leased_at)
               SELECT $1, $2, $3, range.first, range.last, $6, to_timestamp($7::bigint / 1000.0)
               FROM UNNEST($4, $5) AS range (first, last) ON CONFLICT DO NOTHING";
    let (first, last) = sql::bounds(lease.ranges.iter().copied());
    let (series, scope) = (lease.scope_id.series.as_str(), lease.scope_id.scope.as_str());
    let at = lease.at.as_millisecond();
    session.query(sql, &[&lease.id, &series, &scope, &first, &last, &lease.caller, &at]).await?;
    Ok(())
}

/// Invariant: positions leave the table in the transaction that records the lost ones among them.
async fn end(
    session: &Session,
    id: Uuid,
    unused: &[PositionRange],
    owner: &LeaseOwner,
) -> Result<LeaseEnd, Failure> {
    let lease = leases(session, "id = $1 ORDER BY first FOR UPDATE", &[&id]).await?.pop();
    let ended = LeaseEnd::decide(lease, unused, owner);
    if let Some((scope_id, missing)) = ended.missing() {
        session.execute("DELETE FROM bates.client_lease WHERE id = $1", &[&id]).await?;
        let lost: Vec<(&ScopeId, MissingRange)> =
            missing.into_iter().map(|missing| (scope_id, missing)).collect();
        sql::write_lost(session, &lost).await?;
    }
    check_not_left(session).await?;
    Ok(ended)
}

/// The leases that match a condition, which orders them by id and first position, each with all its ranges.
async fn leases(
    session: &Session,
    condition: &str,
    parameters: &[&dyn Parameter],
) -> Result<Vec<ClientLease>, Failure> {
    let sql = format!(
        "SELECT id, series, scope, first, last, caller, (extract(epoch FROM leased_at) * 1000)::bigint
         FROM bates.client_lease WHERE {condition}"
    );
    let mut leases: Vec<ClientLease> = Vec::new();
    for row in session.query(&sql, parameters).await? {
        let Some(range) = sql::range(&row, 3) else { continue };
        match leases.last_mut() {
            Some(last) if last.id == row.get::<_, Uuid>(0) => last.ranges.push(range),
            _ => leases.push(read(&row, range)?),
        }
    }
    Ok(leases)
}

fn read(row: &Row, range: PositionRange) -> Result<ClientLease, Failure> {
    let series: &str = row.get(1);
    let unknown = |_| StoreError::UnknownSeries(series.into());
    Ok(ClientLease {
        id: row.get(0),
        scope_id: ScopeId {
            series: series.parse().map_err(unknown)?,
            scope: ScopeKey::from_store(row.get(2)),
        },
        ranges: vec![range],
        caller: row.get::<_, &str>(5).into(),
        at: Timestamp::from_millisecond(row.get(6)).unwrap_or(Timestamp::MAX),
    })
}

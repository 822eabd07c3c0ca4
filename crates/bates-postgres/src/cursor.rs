//! The cursors of scopes, behind the port of the core.

use std::collections::HashMap;

use bates_core::ledger::Request;
use bates_core::{
    Cursor, CursorStore, GapReason, Grant, GrantError, GrantRequest, MissingRange, Operation, Position,
    PositionRange, RangeSet, ReleaseOutcome, ReleaseRequest, ScopeId, ScopeKey, SeriesName, StoreResult,
};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio_postgres::Row;

use crate::batch::sql;
use crate::outbox::to_limit;
use crate::read;
use crate::store::PostgresStore;

/// Max calls of one caller that wait in the queue at once.
const CALLS_MAX: usize = 1_024;

impl CursorStore for PostgresStore {
    async fn grant(&self, request: GrantRequest) -> Result<Grant, GrantError> {
        self.shared.submit(request.scope_id.clone(), Request::Grant(request)).await?.into_grant()
    }

    async fn grant_all(&self, requests: Vec<GrantRequest>) -> Vec<Result<Grant, GrantError>> {
        // The queue makes batches of them.
        let grants = requests.into_iter().map(|request| self.grant(request));
        stream::iter(grants).buffered(CALLS_MAX).collect().await
    }

    async fn release(&self, release: ReleaseRequest) -> StoreResult<ReleaseOutcome> {
        self.shared.submit(release.scope_id.clone(), Request::Release(release)).await?.into_release()
    }

    async fn release_all(&self, releases: Vec<ReleaseRequest>) -> Vec<StoreResult<ReleaseOutcome>> {
        // The queue makes batches of them.
        let releases = releases.into_iter().map(|release| self.release(release));
        stream::iter(releases).buffered(CALLS_MAX).collect().await
    }

    async fn cursor(&self, scope_id: ScopeId) -> StoreResult<Option<Cursor>> {
        let sql = "SELECT next, version FROM bates.cursor WHERE series = $1 AND scope = $2";
        let rows = self.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
        Ok(rows.first().map(read_cursor))
    }

    async fn cursors(&self, series: SeriesName, scopes: Vec<ScopeKey>) -> StoreResult<Vec<Option<Cursor>>> {
        let sql = "SELECT next, version, scope FROM bates.cursor WHERE series = $1 AND scope = ANY($2)";
        let keys: Vec<&str> = scopes.iter().map(ScopeKey::as_str).collect();
        let rows = self.query(sql, &[&series.as_str(), &keys]).await?;
        let cursors: HashMap<&str, Cursor> = rows.iter().map(|row| (row.get(2), read_cursor(row))).collect();
        Ok(keys.into_iter().map(|key| cursors.get(key).copied()).collect())
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>> {
        let sql = "SELECT next, version, scope FROM bates.cursor
                   WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
        let (is_first, after) = (after.is_none(), after.as_ref().map_or("", ScopeKey::as_str));
        let rows = self.query(sql, &[&series.as_str(), &is_first, &after, &to_limit(limit)]).await?;
        Ok(rows.iter().map(|row| (ScopeKey::from_store(row.get(2)), read_cursor(row))).collect())
    }

    async fn issued_ranges(&self, scope_id: ScopeId) -> StoreResult<Vec<PositionRange>> {
        let sql = "SELECT first, last FROM bates.ledger WHERE series = $1 AND scope = $2";
        let rows = self.query(sql, &[&scope_id.series.as_str(), &scope_id.scope.as_str()]).await?;
        Ok(RangeSet::of(rows.iter().filter_map(|row| sql::range(row, 0))).iter().collect())
    }

    async fn burn(&self, burned: Vec<(ScopeId, PositionRange)>) -> StoreResult<()> {
        let missing = |range| MissingRange { range, reason: GapReason::Burned };
        let ranges: Vec<_> = burned.iter().map(|(scope_id, range)| (scope_id, missing(*range))).collect();
        let ranges = &*ranges;
        self.with_session(|session| async move {
            session.begin().await?;
            // In a restored database, another node may hold the same positions.
            self.check_may_issue(&session).await?;
            sql::write_lost(&session, ranges).await?;
            session.commit().await
        })
        .await
    }

    async fn raise_floor(
        &self,
        scope_id: ScopeId,
        floor: u64,
        operation: Option<Operation>,
    ) -> StoreResult<Cursor> {
        self.operate(scope_id, Request::RaiseFloor(floor, operation.map(Box::new))).await?.into_floor()
    }

    async fn adopt_positions(
        &self,
        scope_id: ScopeId,
        positions: Vec<Position>,
        operation: Option<Operation>,
    ) -> StoreResult<u64> {
        self.operate(scope_id, Request::Adopt(positions, operation.map(Box::new))).await?.into_adopted()
    }

    async fn adopted_positions(
        &self,
        scope_id: ScopeId,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<Position>> {
        let scope_id = &scope_id;
        self.with_session(|session| async move { Ok(read::adopted(&session, scope_id, from, limit).await?) })
            .await
    }
}

fn read_cursor(row: &Row) -> Cursor {
    Cursor { next: sql::get_u64(row, 0), version: sql::get_u64(row, 1) }
}

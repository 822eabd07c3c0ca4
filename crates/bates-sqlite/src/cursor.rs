//! The cursors of scopes, behind the port of the core.

use bates_core::ledger::{Outcome, Request};
use bates_core::{
    Cursor, CursorStore, GapReason, Grant, GrantError, GrantRequest, Operation, Position, PositionRange,
    RangeSet, ReleaseOutcome, ReleaseRequest, ScopeId, ScopeKey, SeriesName, StoreResult,
};
use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::write::{self, rows, to_limit, to_u64};
use crate::{held, scope};

impl CursorStore for SqliteStore {
    async fn grant(&self, request: GrantRequest) -> Result<Grant, GrantError> {
        self.check_complete()?;
        self.submit(request.scope_id.clone(), Request::Grant(request)).await?.into_grant()
    }

    async fn grant_all(&self, requests: Vec<GrantRequest>) -> Vec<Result<Grant, GrantError>> {
        let count = requests.len();
        let request = |request: GrantRequest| (request.scope_id.clone(), Request::Grant(request));
        let granted = match self.check_complete() {
            Ok(()) => self.submit_all(requests.into_iter().map(request).collect()).await,
            Err(error) => Err(error),
        };
        match granted {
            Ok(outcomes) => outcomes.into_iter().map(Outcome::into_grant).collect(),
            Err(error) => vec![Err(error.into()); count],
        }
    }

    async fn release(&self, release: ReleaseRequest) -> StoreResult<ReleaseOutcome> {
        self.submit(release.scope_id.clone(), Request::Release(release)).await?.into_release()
    }

    async fn release_all(&self, releases: Vec<ReleaseRequest>) -> Vec<StoreResult<ReleaseOutcome>> {
        let count = releases.len();
        let request = |release: ReleaseRequest| (release.scope_id.clone(), Request::Release(release));
        match self.submit_all(releases.into_iter().map(request).collect()).await {
            Ok(outcomes) => outcomes.into_iter().map(Outcome::into_release).collect(),
            Err(error) => vec![Err(error); count],
        }
    }

    async fn cursor(&self, scope_id: ScopeId) -> StoreResult<Option<Cursor>> {
        self.merge_new_scopes().await?;
        self.read(|connection| match write::find_scope(connection, &scope_id)? {
            Some(at) => write::cursor(connection, at.series_id, at.scope),
            None => Ok(None),
        })
    }

    async fn cursors(&self, series: SeriesName, scopes: Vec<ScopeKey>) -> StoreResult<Vec<Option<Cursor>>> {
        self.merge_new_scopes().await?;
        let find = |connection: &Connection, scope| {
            let scope_id = ScopeId { series: series.clone(), scope };
            match write::find_scope(connection, &scope_id)? {
                Some(at) => write::cursor(connection, at.series_id, at.scope),
                None => Ok(None),
            }
        };
        self.read(|connection| scopes.into_iter().map(|scope| find(connection, scope)).collect())
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>> {
        self.merge_new_scopes().await?;
        let sql = "SELECT scope, next, version FROM cursor
                   WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?)
                   ORDER BY scope LIMIT ?";
        let after_key = after.as_ref().map_or("", ScopeKey::as_str);
        let values = params![series.as_str(), after.is_none(), after_key, to_limit(limit)];
        let read = |row: &Row<'_>| {
            let cursor = Cursor { next: to_u64(row.get(1)?), version: to_u64(row.get(2)?) };
            Ok((ScopeKey::from_store(row.get_ref(0)?.as_str()?), cursor))
        };
        self.read(|connection| rows(connection, sql, values, read))
    }

    async fn issued_ranges(&self, scope_id: ScopeId) -> StoreResult<Vec<PositionRange>> {
        let sql = "SELECT first, last FROM ledger
                   WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?";
        let values = params![scope_id.series.as_str(), scope_id.scope.as_str()];
        let issued = self.read(|connection| rows(connection, sql, values, |row| write::range(row, 0)))?;
        Ok(RangeSet::of(issued.into_iter().flatten()).iter().collect())
    }

    async fn burn(&self, burned: Vec<(ScopeId, PositionRange)>) -> StoreResult<()> {
        self.write(move |transaction| {
            for (scope_id, range) in &burned {
                let at = write::scope_ref(transaction, scope_id)?;
                held::record_lost(transaction, at, *range, GapReason::Burned)?;
            }
            Ok(())
        })
        .await
    }

    async fn raise_floor(
        &self,
        scope_id: ScopeId,
        floor: u64,
        operation: Option<Operation>,
    ) -> StoreResult<Cursor> {
        self.submit(scope_id, Request::RaiseFloor(floor, operation.map(Box::new))).await?.into_floor()
    }

    async fn adopt_positions(
        &self,
        scope_id: ScopeId,
        positions: Vec<Position>,
        operation: Option<Operation>,
    ) -> StoreResult<u64> {
        self.submit(scope_id, Request::Adopt(positions, operation.map(Box::new))).await?.into_adopted()
    }

    async fn adopted_positions(
        &self,
        scope_id: ScopeId,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<Position>> {
        self.read(|connection| scope::adopted_positions(connection, &scope_id, from, limit))
    }
}

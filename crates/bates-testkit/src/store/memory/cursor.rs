//! The cursors of a store in memory.

use bates_core::ledger::Request;
use bates_core::{
    Cursor, CursorStore, GapReason, Grant, GrantError, GrantRequest, MissingRange, Operation, Position,
    PositionRange, ReleaseOutcome, ReleaseRequest, ScopeId, ScopeKey, SeriesName, StoreError,
};

use super::{MemoryStore, page};

impl CursorStore for MemoryStore {
    async fn grant(&self, request: GrantRequest) -> Result<Grant, GrantError> {
        let scope_id = request.scope_id.clone();
        let granting = self.node.faults.begin(&request).await;
        if !self.latency.is_zero() {
            self.runtime.sleep(self.runtime.jittered(self.latency, 0.0..1.0)).await;
        }
        let request = Request::Grant(request);
        granting.end(|| self.data().decide_and_apply(self, &scope_id, &request).into_grant())
    }

    async fn grant_all(&self, requests: Vec<GrantRequest>) -> Vec<Result<Grant, GrantError>> {
        let mut granted = Vec::new();
        for request in requests {
            granted.push(self.grant(request).await);
        }
        granted
    }

    async fn release(&self, release: ReleaseRequest) -> Result<ReleaseOutcome, StoreError> {
        let scope_id = release.scope_id.clone();
        self.data().decide_and_apply(self, &scope_id, &Request::Release(release)).into_release()
    }

    async fn release_all(&self, releases: Vec<ReleaseRequest>) -> Vec<Result<ReleaseOutcome, StoreError>> {
        let mut outcomes = Vec::new();
        for release in releases {
            outcomes.push(self.release(release).await);
        }
        outcomes
    }

    async fn cursor(&self, scope_id: ScopeId) -> Result<Option<Cursor>, StoreError> {
        Ok(self.data().scopes.get(&scope_id).and_then(|scope| scope.cursor))
    }

    async fn cursors(
        &self,
        series: SeriesName,
        scopes: Vec<ScopeKey>,
    ) -> Result<Vec<Option<Cursor>>, StoreError> {
        let data = self.data();
        let cursor = |scope| data.scopes.get(&ScopeId { series: series.clone(), scope })?.cursor;
        Ok(scopes.into_iter().map(cursor).collect())
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        let after = after.map(|scope| ScopeId { series: series.clone(), scope });
        Ok(page(&self.data().scopes, after, limit, |(scope_id, row)| {
            let cursor = row.cursor.filter(|_| scope_id.series == series)?;
            Some((scope_id.scope.clone(), cursor))
        }))
    }

    async fn issued_ranges(&self, scope_id: ScopeId) -> Result<Vec<PositionRange>, StoreError> {
        let data = self.data();
        Ok(data.scopes.get(&scope_id).into_iter().flat_map(|scope| scope.issued.iter()).collect())
    }

    async fn burn(&self, burned: Vec<(ScopeId, PositionRange)>) -> Result<(), StoreError> {
        let mut data = self.data();
        for (scope_id, range) in burned {
            data.series(&scope_id.series)?;
            let missing = MissingRange { range, reason: GapReason::Burned };
            data.scopes.entry(scope_id).or_default().lose([missing]);
        }
        Ok(())
    }

    async fn raise_floor(
        &self,
        scope_id: ScopeId,
        floor: u64,
        operation: Option<Operation>,
    ) -> Result<Cursor, StoreError> {
        let request = Request::RaiseFloor(floor, operation.map(Box::new));
        self.data().decide_and_apply(self, &scope_id, &request).into_floor()
    }

    async fn adopt_positions(
        &self,
        scope_id: ScopeId,
        positions: Vec<Position>,
        operation: Option<Operation>,
    ) -> Result<u64, StoreError> {
        let request = Request::Adopt(positions, operation.map(Box::new));
        self.data().decide_and_apply(self, &scope_id, &request).into_adopted()
    }

    async fn adopted_positions(
        &self,
        scope_id: ScopeId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Position>, StoreError> {
        let data = self.data();
        let adopted = data.scopes.get(&scope_id).into_iter().flat_map(|scope| scope.adopted_from(from));
        Ok(adopted.take(limit).copied().collect())
    }
}

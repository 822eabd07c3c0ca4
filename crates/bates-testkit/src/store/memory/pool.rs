//! The shared pools of a store in memory.

use bates_core::ledger::{PoolBefore, PoolChange};
use bates_core::{
    Operation, Pool, PoolSettlement, PoolStore, RenewRequest, ScopeId, ScopeKey, SeriesName, StoreError,
};
use uuid::Uuid;

use super::{Data, MemoryStore, page};

impl PoolStore for MemoryStore {
    async fn pool(&self, scope_id: ScopeId, operation: Option<Operation>) -> Result<Pool, StoreError> {
        let mut data = self.data();
        data.series(&scope_id.series)?;
        let is_new = !data.pools.contains_key(&scope_id);
        data.append(operation.filter(|_| is_new));
        Ok(data.pools.entry(scope_id).or_default().clone())
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Pool)>, StoreError> {
        let after = after.map(|scope| ScopeId { series: series.clone(), scope });
        Ok(page(&self.data().pools, after, limit, |(scope_id, pool)| {
            (scope_id.series == series).then(|| (scope_id.scope.clone(), pool.clone()))
        }))
    }

    async fn renew_pool(&self, scope_id: ScopeId, renewal: RenewRequest) -> Result<Option<Pool>, StoreError> {
        let mut data = self.data();
        let Some(change) = data.pool_before(&scope_id)?.renew(renewal) else { return Ok(None) };
        data.pools.insert(scope_id.clone(), change.pool.clone());
        Ok(Some(data.change_pool(scope_id, change)))
    }

    async fn settle_pool(&self, scope_id: ScopeId, settlement: PoolSettlement) -> Result<(), StoreError> {
        let mut data = self.data();
        let change = data.pool_before(&scope_id)?.settle(&settlement);
        data.change_pool(scope_id, change);
        Ok(())
    }
}

impl Data {
    fn pool_before(&self, scope_id: &ScopeId) -> Result<PoolBefore<Uuid>, StoreError> {
        self.series(&scope_id.series)?;
        let pool = self.pools.get(scope_id).cloned().unwrap_or_default();
        let rows = self.scopes.get(scope_id).map(|scope| scope.pooled.clone()).unwrap_or_default();
        Ok(PoolBefore { pool, rows, held_from: None })
    }

    fn change_pool(&mut self, scope_id: ScopeId, change: PoolChange<Uuid>) -> Pool {
        let scope = self.scopes.entry(scope_id).or_default();
        scope.pooled.retain(|row| !change.removed.contains(&row.range.from()));
        scope.pooled.extend(change.added);
        scope.lose(change.lost);
        change.pool
    }
}

//! What a store in memory knows of shared pools.

use bates_core::ledger::{PoolBefore, PoolChange};
use bates_core::{Place, Pool, PoolStore, Renewal, ScopeKey, SeriesName, Settling, StoreError};
use uuid::Uuid;

use super::{Data, MemoryStore, page};

impl PoolStore for MemoryStore {
    async fn pool(&self, place: Place) -> Result<Pool, StoreError> {
        let mut data = self.data();
        data.series(&place.series)?;
        Ok(data.pools.entry(place).or_default().clone())
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Pool)>, StoreError> {
        let after = after.map(|scope| Place { series: series.clone(), scope });
        Ok(page(&self.data().pools, after, limit, |(place, pool)| {
            (place.series == series).then(|| (place.scope.clone(), pool.clone()))
        }))
    }

    async fn renew_pool(&self, place: Place, renewal: Renewal) -> Result<Option<Pool>, StoreError> {
        let mut data = self.data();
        let Some(change) = data.pool_before(&place)?.renew(renewal) else { return Ok(None) };
        data.pools.insert(place.clone(), change.pool.clone());
        Ok(Some(data.change_pool(place, change)))
    }

    async fn settle_pool(&self, place: Place, settling: Settling) -> Result<(), StoreError> {
        let mut data = self.data();
        let change = data.pool_before(&place)?.settle(&settling);
        data.change_pool(place, change);
        Ok(())
    }
}

impl Data {
    fn pool_before(&self, place: &Place) -> Result<PoolBefore<Uuid>, StoreError> {
        self.series(&place.series)?;
        let pool = self.pools.get(place).cloned().unwrap_or_default();
        let rows = self.scopes.get(place).map(|scope| scope.pooled.clone()).unwrap_or_default();
        Ok(PoolBefore { pool, rows, held_from: None })
    }

    fn change_pool(&mut self, place: Place, change: PoolChange<Uuid>) -> Pool {
        let scope = self.scopes.entry(place).or_default();
        scope.pooled.retain(|row| !change.removed.contains(&row.range.from()));
        scope.pooled.extend(change.added);
        scope.lose(change.lost);
        change.pool
    }
}

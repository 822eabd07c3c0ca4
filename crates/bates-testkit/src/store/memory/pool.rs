//! What a store in memory knows of shared pools.

use bates_core::{
    Lease, Missing, Place, Pool, PoolStore, Ranges, Reason, Renewal, ScopeKey, SeriesName, Settling,
    StoreError,
};

use super::scope::{PooledRange, ScopeRow};
use super::{MemoryStore, page};

/// Past all positions that there can be.
const END: u64 = u64::MAX;

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
        data.series(&place.series)?;
        let pool = data.pools.entry(place.clone()).or_default();
        if pool.epoch != renewal.seen {
            return Ok(None);
        }
        *pool = Pool { epoch: renewal.seen.max(renewal.above) + 1, server: Some(renewal.server) };
        let renewed = pool.clone();
        if let Some(scope) = data.scopes.get_mut(&place) {
            let pushed = scope.unpool(true, 0, END);
            scope.lose(Missing::all(pushed.iter(), Reason::PoolInvalidated));
        }
        Ok(Some(renewed))
    }

    async fn settle_pool(&self, place: Place, settling: Settling) -> Result<(), StoreError> {
        let mut data = self.data();
        data.series(&place.series)?;
        let is_current = data.pools.get(&place).map_or(0, |pool| pool.epoch) == settling.epoch;
        let Some(scope) = data.scopes.get_mut(&place) else { return Ok(()) };
        if let Some(range) = settling.pushed {
            let pushed = scope.unpool(false, range.from(), range.to());
            if is_current {
                let node = self.node.id;
                scope.pooled.extend(pushed.iter().map(|range| PooledRange { node, range, is_pushed: true }));
            } else {
                scope.lose(Missing::all(pushed.iter(), Reason::PoolInvalidated));
            }
        }
        if let Some(range) = settling.unused {
            let unused = scope.unpool(false, range.from(), range.to());
            scope.lose(Missing::all(unused.iter(), Reason::FillFenced));
        }
        if let Some(to) = settling.popped_to.filter(|_| is_current) {
            scope.unpool(true, 0, to);
        }
        Ok(())
    }
}

impl ScopeRow {
    /// Takes positions out of the pool that are there, or still with the process that asked for them.
    fn unpool(&mut self, is_pushed: bool, from: u64, to: u64) -> Ranges {
        let wanted = Ranges::of(Lease::new(from, to));
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for pooled in self.pooled.drain(..) {
            let all = Ranges::of([pooled.range]);
            let rest = if pooled.is_pushed == is_pushed { all.without(&wanted) } else { all.clone() };
            gone.extend(all.without(&rest).iter());
            kept.extend(rest.iter().map(|range| PooledRange { range, ..pooled.clone() }));
        }
        self.pooled = kept;
        Ranges::of(gone)
    }
}

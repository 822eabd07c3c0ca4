//! The cursors of a store in memory.

use bates_core::ledger::Request;
use bates_core::{
    Cursor, CursorStore, Grant, GrantError, Lease, Missing, Place, Position, Reason, ScopeKey, SeriesName,
    StoreError, Surrendered, Tail, Want,
};

use super::{MemoryStore, page};

impl CursorStore for MemoryStore {
    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        let place = want.place.clone();
        let granting = self.node.faults.begin(&want).await;
        if !self.latency.is_zero() {
            self.runtime.sleep(self.runtime.jittered(self.latency, 0.0..1.0)).await;
        }
        let request = Request::Grant(want);
        granting.end(|| self.data().ask(self, &place, &request).into_grant())
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        let place = tail.place.clone();
        self.data().ask(self, &place, &Request::Release(tail)).into_release()
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        Ok(self.data().scopes.get(&place).and_then(|scope| scope.cursor))
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        let after = after.map(|scope| Place { series: series.clone(), scope });
        Ok(page(&self.data().scopes, after, limit, |(place, row)| {
            let cursor = row.cursor.filter(|_| place.series == series)?;
            Some((place.scope.clone(), cursor))
        }))
    }

    async fn ledger(&self, place: Place) -> Result<Vec<Lease>, StoreError> {
        let data = self.data();
        Ok(data.scopes.get(&place).into_iter().flat_map(|scope| scope.issued.iter()).collect())
    }

    async fn burn(&self, burned: Vec<(Place, Lease)>) -> Result<(), StoreError> {
        let mut data = self.data();
        for (place, range) in burned {
            data.series(&place.series)?;
            let missing = Missing { range, reason: Reason::Burned };
            data.scopes.entry(place).or_default().lose([missing]);
        }
        Ok(())
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        self.data().ask(self, &place, &Request::RaiseFloor(floor)).into_floor()
    }

    async fn set_aside(&self, place: Place, positions: Vec<Position>) -> Result<u64, StoreError> {
        self.data().ask(self, &place, &Request::Adopt(positions)).into_adopted()
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> Result<Vec<Position>, StoreError> {
        let data = self.data();
        let adopted = data.scopes.get(&place).into_iter().flat_map(|scope| scope.adopted_from(from));
        Ok(adopted.take(limit).copied().collect())
    }
}

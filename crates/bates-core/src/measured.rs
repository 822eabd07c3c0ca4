//! A store that is watched: how often it grants, how often it fails, how long it takes. Decides nothing.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::audit::{Audit, Record, RecordFilter};
use crate::clock::Clock;
use crate::counts::{Counts, Latency};
use crate::grant::{Grant, GrantError, Surrendered, Tail, Want};
use crate::lease::Lease;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::promise::Promise;
use crate::recall::{Holder, Recall};
use crate::store::{Cursor, Definition, Pinned, Redescription, Store, StoreError};

/// A store, and what was seen of it.
pub(crate) struct Measured<S> {
    store: S,
    clock: Arc<dyn Clock>,
    latency: Latency,
    counts: RwLock<HashMap<SeriesName, Arc<Counts>>>,
}

impl<S> Measured<S> {
    pub(crate) fn new(store: S, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, latency: Latency::default(), counts: RwLock::default() }
    }

    /// The counts of a series, which are the same however often it is retired and made again.
    pub(crate) fn counts(&self, series: &SeriesName) -> Arc<Counts> {
        self.counts.write().entry(series.clone()).or_default().clone()
    }

    pub(crate) fn inner(&self) -> &S {
        &self.store
    }

    pub(crate) fn latency(&self) -> &Latency {
        &self.latency
    }
}

impl<S: Audit> Audit for Measured<S> {
    async fn record(&self, records: Vec<Record>) -> Result<(), StoreError> {
        self.store.record(records).await
    }

    async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.store.records(of, after, limit).await
    }

    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.store.prune_records(series, before, limit).await
    }
}

impl<S: Store> Store for Measured<S> {
    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        let counts = self.counts.read().get(&want.place.series).cloned();
        let started = self.clock.elapsed();
        let (scope, end) = (want.place.scope.clone(), want.end);
        let granted = self.store.grant(want).await;
        self.latency.add(self.clock.elapsed().saturating_sub(started));
        if let Some(counts) = counts {
            counts.add_refill(granted.is_ok());
            match &granted {
                Ok(Grant { lease, .. }) => counts.reach().extend(scope.parts().1, lease.to()),
                Err(GrantError::Exhausted { left, .. }) => {
                    counts.reach().extend(scope.parts().1, end.saturating_sub(*left));
                }
                Err(_) => {}
            }
        }
        granted
    }

    fn identity(&self) -> Uuid {
        self.store.identity()
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> Result<Pinned, StoreError> {
        self.store.pin(definition, fresh_key).await
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        let (place, lease) = (tail.place.clone(), tail.lease);
        let surrendered = self.store.surrender(tail).await;
        if let (Ok(Surrendered::Returned), Some(counts)) =
            (&surrendered, self.counts.read().get(&place.series))
        {
            counts.reach().draw_back(place.scope.parts().1, lease.to(), lease.from());
        }
        surrendered
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        self.store.cursor(place).await
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        self.store.raise_floor(place, floor).await
    }

    async fn set_aside(&self, place: Place, positions: Vec<u64>) -> Result<u64, StoreError> {
        self.store.set_aside(place, positions).await
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> Result<Vec<u64>, StoreError> {
        self.store.aside(place, from, limit).await
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        self.store.scopes(series, after, limit).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.store.probe().await
    }

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        self.store.describe(series, before, description).await
    }

    async fn watch(&self) -> Result<u64, StoreError> {
        self.store.watch().await
    }

    fn era(&self) -> u64 {
        self.store.era()
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        from: Promise,
        to: Promise,
        described: Option<Redescription>,
    ) -> Result<bool, StoreError> {
        self.store.change_promise(series, from, to, described).await
    }

    async fn promises(&self) -> Result<Vec<(SeriesName, Promise)>, StoreError> {
        self.store.promises().await
    }

    async fn recall(&self, series: SeriesName) -> Result<u64, StoreError> {
        self.store.recall(series).await
    }

    async fn recalls(&self) -> Result<Vec<Recall>, StoreError> {
        self.store.recalls().await
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, Lease)>,
    ) -> Result<(), StoreError> {
        self.store.give_up(series, epoch, unused).await
    }

    async fn burn(&self, burned: Vec<(Place, Lease)>) -> Result<(), StoreError> {
        self.store.burn(burned).await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.store.leave().await
    }

    async fn holders(&self, series: SeriesName, epoch: u64) -> Result<Vec<Holder>, StoreError> {
        self.store.holders(series, epoch).await
    }

    async fn write_off(&self, series: SeriesName, epoch: u64, nodes: Vec<Uuid>) -> Result<(), StoreError> {
        self.store.write_off(series, epoch, nodes).await
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        self.store.descriptions().await
    }

    async fn ledger(&self, place: Place) -> Result<Vec<Lease>, StoreError> {
        self.store.ledger(place).await
    }
}

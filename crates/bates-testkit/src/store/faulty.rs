//! A store that fails on purpose: at a chosen grant, before it is written or after, or not until it is let
//! through. Owns the fault; what it wraps is a real store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bates_core::{
    Cursor, Definition, Grant, GrantError, Holder, Lease, Pinned, Place, Promise, Recall, Redescription,
    ScopeKey, SeriesName, Store, StoreError, Surrendered, Tail, Want,
};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// What happens to a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It fails, and nothing is written.
    BeforeWrite,
    /// It is written, and its answer is lost: a crash, or a cut connection.
    AfterWrite,
}

/// A store with faults.
pub struct FaultyStore<S> {
    pub(super) inner: Arc<S>,
    script: Mutex<VecDeque<Fault>>,
    /// `None` lets every grant through.
    gate: Option<Semaphore>,
    seen: Mutex<Seen>,
    is_taken_back: AtomicBool,
    pub(super) is_unrecorded: AtomicBool,
}

#[derive(Default)]
struct Seen {
    counts: Vec<u64>,
    held_from: Vec<Option<u64>>,
    running: BTreeMap<Place, usize>,
    running_most: usize,
}

impl<S> FaultyStore<S> {
    /// Without faults: only looks on.
    pub fn new(inner: Arc<S>) -> Self {
        Self {
            inner,
            script: Mutex::default(),
            gate: None,
            seen: Mutex::default(),
            is_taken_back: false.into(),
            is_unrecorded: false.into(),
        }
    }

    /// Lets no grant through until [`FaultyStore::let_through`].
    pub fn gated(inner: Arc<S>) -> Self {
        Self { gate: Some(Semaphore::new(0)), ..Self::new(inner) }
    }

    /// What happens to the next grants, or pages of a move, in their order; those after them succeed.
    pub fn plan(&self, faults: &[Fault]) {
        lock(&self.script).extend(faults);
    }

    /// As a database that was restored from an old backup: it grants nothing, and says why.
    pub fn take_back(&self) {
        self.is_taken_back.store(true, Ordering::SeqCst);
    }

    /// From now on it keeps no record of the audit, or does so again.
    pub fn refuse_records(&self, refuses: bool) {
        self.is_unrecorded.store(refuses, Ordering::SeqCst);
    }

    pub(super) fn next_fault(&self) -> Fault {
        lock(&self.script).pop_front().unwrap_or(Fault::None)
    }

    fn check(&self) -> Result<(), StoreError> {
        let is_taken_back = self.is_taken_back.load(Ordering::SeqCst);
        if is_taken_back { Err(StoreError::Poisoned("taken back by a test".into())) } else { Ok(()) }
    }

    /// Lets so many grants through.
    pub fn let_through(&self, grants: usize) {
        if let Some(gate) = &self.gate {
            gate.add_permits(grants);
        }
    }

    /// How many positions each grant so far asked for.
    pub fn counts(&self) -> Vec<u64> {
        lock(&self.seen).counts.clone()
    }

    /// What each grant so far was told to be the first position that is still held.
    pub fn held_from(&self) -> Vec<Option<u64>> {
        lock(&self.seen).held_from.clone()
    }

    /// How many grants of one place were under way together, at the most.
    pub fn running_most(&self) -> usize {
        lock(&self.seen).running_most
    }

    fn begin(&self, want: &Want) {
        let mut seen = lock(&self.seen);
        seen.counts.push(want.count);
        seen.held_from.push(want.held_from);
        let running = seen.running.entry(want.place.clone()).or_default();
        *running += 1;
        let running = *running;
        seen.running_most = seen.running_most.max(running);
    }

    fn end(&self, place: &Place) {
        if let Some(running) = lock(&self.seen).running.get_mut(place) {
            *running -= 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Store> Store for FaultyStore<S> {
    fn identity(&self) -> Uuid {
        self.inner.identity()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        self.begin(&want);
        let place = want.place.clone();
        if let Some(gate) = &self.gate {
            gate.acquire().await.expect("the gate is never closed").forget();
        }
        let fault = self.next_fault();
        let failed = || GrantError::Store(StoreError::Unavailable("planned by a test".into()));
        let outcome = match fault {
            Fault::None => match self.check() {
                Ok(()) => self.inner.grant(want).await,
                Err(poisoned) => Err(poisoned.into()),
            },
            Fault::BeforeWrite => Err(failed()),
            Fault::AfterWrite => self.inner.grant(want).await.and(Err(failed())),
        };
        self.end(&place);
        outcome
    }

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> Result<Pinned, StoreError> {
        self.inner.pin(definition, fresh_key).await
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        self.inner.surrender(tail).await
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        self.inner.cursor(place).await
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        self.inner.raise_floor(place, floor).await
    }

    async fn set_aside(&self, place: Place, positions: Vec<u64>) -> Result<u64, StoreError> {
        self.inner.set_aside(place, positions).await
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> Result<Vec<u64>, StoreError> {
        self.inner.aside(place, from, limit).await
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        self.inner.scopes(series, after, limit).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.inner.probe().await
    }

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        self.inner.describe(series, before, description).await
    }

    async fn watch(&self) -> Result<u64, StoreError> {
        self.check()?;
        self.inner.watch().await
    }

    fn era(&self) -> u64 {
        self.inner.era() + u64::from(self.check().is_err())
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        from: Promise,
        to: Promise,
        described: Option<Redescription>,
    ) -> Result<bool, StoreError> {
        self.inner.change_promise(series, from, to, described).await
    }

    async fn promises(&self) -> Result<Vec<(SeriesName, Promise)>, StoreError> {
        self.inner.promises().await
    }

    async fn recall(&self, series: SeriesName) -> Result<u64, StoreError> {
        self.inner.recall(series).await
    }

    async fn recalls(&self) -> Result<Vec<Recall>, StoreError> {
        self.inner.recalls().await
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, Lease)>,
    ) -> Result<(), StoreError> {
        self.inner.give_up(series, epoch, unused).await
    }

    async fn burn(&self, burned: Vec<(Place, Lease)>) -> Result<(), StoreError> {
        self.inner.burn(burned).await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.inner.leave().await
    }

    async fn holders(&self, series: SeriesName, epoch: u64) -> Result<Vec<Holder>, StoreError> {
        self.inner.holders(series, epoch).await
    }

    async fn write_off(&self, series: SeriesName, epoch: u64, nodes: Vec<Uuid>) -> Result<(), StoreError> {
        self.inner.write_off(series, epoch, nodes).await
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        self.inner.descriptions().await
    }

    async fn ledger(&self, place: Place) -> Result<Vec<Lease>, StoreError> {
        self.inner.ledger(place).await
    }
}

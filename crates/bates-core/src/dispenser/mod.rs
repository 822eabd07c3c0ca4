//! The dispenser: hands out positions from memory, after the store has moved the cursor past them.
//!
//! How it keeps the promises:
//! - no number comes twice: a cell holds only positions of a durable grant, and each leaves it once;
//! - ordered numbers ascend: so do grants, and no caller overtakes one that waits;
//! - no used position is released: it leaves memory first, and the store compares before its cursor goes back.
//!
//! Unused positions are *released* (the cursor goes back, or they become a gap) or, after a recall or a restore,
//! *given up* (reported, and always a gap). Positions taken that reach no caller are *burned*: a gap too.

mod ahead;
mod burned;
mod cell;
mod cells;
mod closing;
mod held;
mod inline_key;
mod recall;
mod refill;
mod shards;
mod take;
mod waiters;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::ProcessGuard;
use crate::runtime::SystemRuntime;
use crate::scope::ScopeKey;
use crate::series::{Series, SeriesName};
use crate::store::{MeasuredStore, Store, StoreError, StoreResult};
use ahead::Rooms;
use burned::BurnedPositions;
use cell::{Cell, RefillRequest};
use recall::GivenUpRanges;
use refill::TaskCount;
use shards::{CellId, Shards};

pub(crate) use ahead::{Popped, Rendering};
pub use closing::ReleaseReport;
pub(crate) use take::{TakeRequest, TakeResult};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldLevel {
    pub scopes: u64,
    /// Positions granted and not handed out.
    pub held: u64,
}

/// Hands out positions. Cheap to clone.
pub struct Dispenser<S> {
    inner: Arc<Inner<S>>,
}

impl<S> Clone for Dispenser<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<S> {
    store: MeasuredStore<S>,
    shards: Shards,
    ahead_rooms: Rooms,
    /// Limits the calls that the store grants one by one.
    direct_calls: Semaphore,
    is_closing: AtomicBool,
    tasks: Arc<TaskCount>,
    /// The era of the store ([`crate::SeriesStore::era`]) in which everything held was granted.
    era: AtomicU64,
    given_up: GivenUpRanges,
    burned: BurnedPositions,
    /// Whether the store did not confirm a release.
    has_unknown_releases: AtomicBool,
    recalls_answered: AtomicU64,
    /// Runs the tasks. A caller may be in another runtime that ends earlier, or in none.
    tokio: Handle,
    process: ProcessGuard,
}

impl<S: Store> Dispenser<S> {
    /// Its tasks run in the caller's Tokio runtime, which must outlive the dispenser. Panics outside one.
    pub fn new(store: Arc<S>) -> Self {
        Self::with_store(MeasuredStore::new(store, Arc::new(SystemRuntime)))
    }

    pub(crate) fn with_store(store: MeasuredStore<S>) -> Self {
        let inner = Inner {
            era: AtomicU64::new(store.era()),
            shards: Shards::new(store.runtime().random()),
            ahead_rooms: Rooms::default(),
            direct_calls: Semaphore::new(take::CALLS_MAX),
            is_closing: AtomicBool::default(),
            tasks: Arc::default(),
            given_up: GivenUpRanges::default(),
            burned: BurnedPositions::default(),
            has_unknown_releases: AtomicBool::default(),
            recalls_answered: AtomicU64::default(),
            tokio: Handle::current(),
            store,
            process: ProcessGuard::current(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// New scopes beyond about this many in memory are refused until idle ones leave it.
    pub(crate) fn limit_scopes(&self, scopes_max: usize) {
        self.inner.shards.limit_len(scopes_max);
    }

    #[inline]
    fn may_hold(&self, series: &Series) -> bool {
        !self.is_closing() && !series.is_retired() && !series.is_uncached() && !self.is_forked()
    }

    /// Invariant: a fork takes and releases nothing, and takes no lock.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.inner.process.is_forked()
    }

    /// Starts fetching the first positions of a scope that is not in memory.
    pub fn prefetch(&self, series: &Series, scope: &ScopeKey) {
        self.inner.start_refill(self.first_refill(series, scope));
    }

    /// As [`Self::prefetch`] for many scopes, with one call of the store.
    pub fn prefetch_all<'s>(&self, scopes: impl IntoIterator<Item = (&'s Series, &'s ScopeKey)>) {
        let refills = scopes.into_iter().filter_map(|(series, scope)| self.first_refill(series, scope));
        self.inner.start_first_refills(refills.collect());
    }

    /// Invariant: the caller starts it, because the cell waits for its end.
    fn first_refill(&self, series: &Series, scope: &ScopeKey) -> Option<RefillRequest> {
        if self.is_forked() {
            return None;
        }
        let id = CellId { series, scope: scope.as_str() };
        let is_cached = self.direct_purpose(series).is_none();
        let may_create = || is_cached && self.may_hold(series);
        self.inner.shards.with_cell_or_new(id, may_create, Cell::first_refill).ok().flatten()
    }

    /// `None` if the scope is not in memory. Never creates one.
    pub fn level(&self, series: &Series, scope: &ScopeKey) -> Option<HeldLevel> {
        let id = CellId { series, scope: scope.as_str() };
        self.inner.shards.with_cell(id, |cell| HeldLevel { scopes: 1, held: cell.held.count() })
    }

    /// How much each series holds in memory. Walks all scopes there.
    pub fn levels(&self) -> HashMap<SeriesName, HeldLevel> {
        let mut levels: HashMap<SeriesName, HeldLevel> = HashMap::new();
        self.inner.shards.each(|cell| {
            let level = levels.entry(cell.series.name().clone()).or_default();
            level.scopes += 1;
            level.held += cell.held.count();
        });
        levels
    }

    /// The first position of a scope not yet handed out. `None` if the scope does not exist. Never creates one.
    pub async fn peek(&self, series: &Series, scope: &ScopeKey) -> StoreResult<Option<u64>> {
        if self.is_forked() {
            return Err(StoreError::Forked);
        }
        let id = CellId { series, scope: scope.as_str() };
        let held = self.inner.shards.with_cell(id, |cell| cell.held.first()).flatten();
        if held.is_some() {
            return Ok(held);
        }
        Ok(self.inner.store.cursor(series.scope_id(scope)).await?.map(|cursor| cursor.next))
    }

    /// As [`Self::peek`], for many scopes of a series with at most one look into the store.
    pub async fn peek_all(&self, series: &Series, scopes: &[ScopeKey]) -> StoreResult<Vec<Option<u64>>> {
        if self.is_forked() {
            return Err(StoreError::Forked);
        }
        let held = |scope: &ScopeKey| {
            let id = CellId { series, scope: scope.as_str() };
            self.inner.shards.with_cell(id, |cell| cell.held.first()).flatten()
        };
        let mut next: Vec<Option<u64>> = scopes.iter().map(held).collect();
        let unheld: Vec<usize> = (0..next.len()).filter(|at| next[*at].is_none()).collect();
        if !unheld.is_empty() {
            let keys = unheld.iter().map(|at| scopes[*at].clone()).collect();
            let cursors = self.inner.store.cursors(series.name().clone(), keys).await?;
            for (at, cursor) in unheld.into_iter().zip(cursors) {
                next[at] = cursor.map(|cursor| cursor.next);
            }
        }
        Ok(next)
    }

    pub fn scopes_held(&self) -> usize {
        self.inner.shards.len()
    }

    /// Evicts the scopes that no caller used since the last call, and releases their positions.
    pub async fn evict_idle(&self) -> ReleaseReport {
        if self.is_forked() {
            return ReleaseReport::default();
        }
        self.inner.release_all(self.inner.seal(None, true), None).await
    }

    /// Refuses new calls, lets those under way end, and releases everything. Afterwards no task uses the store.
    pub async fn close(&self) -> ReleaseReport {
        self.close_before(None).await
    }

    /// As [`Self::close`]; what cannot be released within `time` is skipped, as after a crash.
    pub async fn close_within(&self, time: Duration) -> ReleaseReport {
        self.close_before(Some(self.inner.store.runtime().elapsed() + time)).await
    }

    async fn close_before(&self, deadline: Option<Duration>) -> ReleaseReport {
        if self.is_forked() {
            return ReleaseReport::default();
        }
        self.inner.is_closing.store(true, Ordering::Release);
        let closed = self.close_all(None, deadline).await;
        self.inner.tasks.all_ended().await;
        self.report_stop().await;
        closed
    }

    /// Refuses new calls for the series, lets those under way end, and releases its positions.
    pub(crate) async fn retire(&self, series: &Series) -> ReleaseReport {
        series.retire();
        self.close_all(Some(series.name()), None).await
    }

    /// Gives up everything held and on its way if the store was restored.
    pub(crate) fn discard_if_restored(&self) {
        self.inner.discard_if_restored();
    }

    pub fn is_closing(&self) -> bool {
        self.inner.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn store(&self) -> &MeasuredStore<S> {
        &self.inner.store
    }
}

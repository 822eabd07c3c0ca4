//! The dispenser: hands positions out of memory, and has the store move the cursor before it does.
//!
//! Owns what is in memory and when the store is asked. What may go wrong with it, and the rule of the design
//! that forbids it:
//! - a number twice: only positions of a durable grant are held, and each leaves its cell once;
//! - a number that falls: grants ascend, and who comes while somebody waits, waits behind;
//! - a tail given back that was used: a cell is sealed and removed first, and the store compares before it takes
//!   back.

mod burned;
mod cell;
mod closing;
mod held;
mod line;
mod recall;
mod refill;
mod shards;
mod take;
mod text;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::ProcessGuard;
use crate::runtime::SystemRuntime;
use crate::scope::ScopeKey;
use crate::series::{Series, SeriesName};
use crate::store::{Measured, Store, StoreError};
use burned::Burned;
use cell::Cell;
use recall::GivenUp;
use refill::Refills;
use shards::{At, Shards};

pub use closing::Closed;
pub(crate) use take::Wanted;

/// How much a scope, or all scopes of a series, hold in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Scopes that are in memory.
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
    store: Measured<S>,
    shards: Shards,
    direct_calls: Semaphore,
    is_closing: AtomicBool,
    refills: Arc<Refills>,
    /// The era of the store in which all that is held was granted.
    era: AtomicU64,
    given_up: GivenUp,
    burned: Burned,
    /// Whether the store did not say what became of a tail that was given back.
    has_unknown_tails: AtomicBool,
    recalls_answered: AtomicU64,
    /// The runtime that refills. A caller may be in another one that ends before the refill does, or in none.
    tokio: Handle,
    process: ProcessGuard,
}

impl<S: Store> Dispenser<S> {
    /// A dispenser in front of a store, with nothing in memory. It refills in the runtime of the caller, which must live
    /// as long as the dispenser.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn new(store: Arc<S>) -> Self {
        Self::on(Measured::new(store, Arc::new(SystemRuntime)))
    }

    pub(crate) fn on(store: Measured<S>) -> Self {
        let inner = Inner {
            era: AtomicU64::new(store.era()),
            shards: Shards::new(store.runtime().random()),
            direct_calls: Semaphore::new(take::CALLS_MAX),
            is_closing: AtomicBool::new(false),
            refills: Arc::default(),
            given_up: GivenUp::default(),
            burned: Burned::default(),
            has_unknown_tails: AtomicBool::new(false),
            recalls_answered: AtomicU64::new(0),
            tokio: Handle::current(),
            store,
            process: ProcessGuard::current(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether positions of a series may be held in memory.
    #[inline]
    fn may_hold(&self, series: &Series) -> bool {
        !self.is_closing() && !series.is_retired() && !series.is_out_of_memory() && !self.is_forked()
    }

    /// Invariant: a fork of the process that made the dispenser takes and gives back nothing, and takes no lock.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.inner.process.is_forked()
    }

    /// Fetches the first positions of a scope that is about to be asked for, without waiting and without taking any.
    pub fn warm(&self, series: &Series, scope: &ScopeKey) {
        if self.is_forked() {
            return;
        }
        let at = At { series, scope: scope.as_str() };
        let is_held = self.direct(series).is_none();
        let may_make = || is_held && self.may_hold(series);
        let fetch = self.inner.shards.look_or_make(at, may_make, Cell::warm).flatten();
        self.inner.start_refill(fetch);
    }

    /// How much a scope holds in memory; `None` if it is not there. Never creates one.
    pub fn level(&self, series: &Series, scope: &ScopeKey) -> Option<Level> {
        let at = At { series, scope: scope.as_str() };
        self.inner.shards.look(at, |cell| Level { scopes: 1, held: cell.held_count() })
    }

    /// How much each series holds in memory. Looks at every scope there.
    pub fn levels(&self) -> HashMap<SeriesName, Level> {
        let mut levels: HashMap<SeriesName, Level> = HashMap::new();
        self.inner.shards.each(|cell| {
            let level = levels.entry(cell.series().name().clone()).or_default();
            level.scopes += 1;
            level.held += cell.held_count();
        });
        levels
    }

    /// The first position of a scope that was not handed out yet. `None` if there is no such scope.
    pub async fn peek(&self, series: &Series, scope: &ScopeKey) -> Result<Option<u64>, StoreError> {
        if self.is_forked() {
            return Err(StoreError::Forked);
        }
        let at = At { series, scope: scope.as_str() };
        let held = self.inner.shards.look(at, |cell| cell.first_held()).flatten();
        if held.is_some() {
            return Ok(held);
        }
        Ok(self.inner.store.cursor(series.place(scope)).await?.map(|cursor| cursor.next))
    }

    /// How many scopes are in memory.
    pub fn scopes_held(&self) -> usize {
        self.inner.shards.len()
    }

    /// Evicts the scopes that nobody asked for since the last call, and gives their tails back.
    pub async fn evict_idle(&self) -> Closed {
        if self.is_forked() {
            return Closed::default();
        }
        let sealed = self.inner.seal(None, true);
        self.inner.give_back(sealed).await
    }

    /// Refuses new calls, ends those under way and gives all tails back. No task has the store afterwards.
    pub async fn close(&self) -> Closed {
        if self.is_forked() {
            return Closed::default();
        }
        self.inner.is_closing.store(true, Ordering::Release);
        let closed = self.close_all(None).await;
        self.inner.refills.all_ended().await;
        self.leave().await;
        closed
    }

    /// Retires a series: begins nothing new, ends what is under way, gives its tails back and holds nothing of it.
    pub(crate) async fn retire(&self, series: &Series) -> Closed {
        series.retire();
        self.close_all(Some(series.name())).await
    }

    /// Gives up all that is held, and what is on its way, if the store no longer vouches for it.
    pub(crate) fn keep_up(&self) {
        self.inner.keep_up();
    }

    /// Whether new calls are refused.
    pub fn is_closing(&self) -> bool {
        self.inner.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn store(&self) -> &Measured<S> {
        &self.inner.store
    }
}

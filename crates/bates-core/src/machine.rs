//! The numbering machine: series opened on a store. Owns what no front end may decide: which series a key belongs to,
//! what a scope is, what a number reads like.

mod at_hand;
mod draw;
mod numbers;
mod peek;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use tokio::sync::Mutex;

use crate::audit::By;
use crate::code::Code;
use crate::counts::Latency;
use crate::dispenser::{Closed, Dispenser, Level, Wanted};
use crate::error::IssueError;
use crate::gap::Saved;
use crate::pool::KeptPools;
use crate::range::Taken;
use crate::runtime::Runtime;
use crate::scope::{ScopeName, ScopeRefused};
use crate::series::{
    Entry, Follower, MachineError, Memory, OpenScope, Registry, SeriesName, SeriesSpec, open_all,
};
use crate::store::{Measured, Store};
pub(crate) use draw::{Drawn, Piece, Unclaimed};

pub use at_hand::{NotAtHand, ReadyScope};
pub use numbers::Numbers;
pub use peek::{Found, Peek};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NextError {
    #[error(transparent)]
    Scope(#[from] ScopeRefused),
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The rules reject whatever comes next. The positions are skipped for good.
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected { positions: u64 },
}

impl NextError {
    pub const fn code(&self) -> Code {
        match self {
            Self::Scope(refused) => refused.code(),
            Self::Issue(error) => error.code(),
            Self::AllRejected { .. } => Code::ALL_REJECTED,
        }
    }
}

pub struct Machine<S> {
    pub(crate) dispenser: Dispenser<S>,
    pub(crate) registry: ArcSwap<Registry>,
    /// Serialises changes of the registry, and knows how far it has followed the store.
    pub(crate) changing: Mutex<Follower>,
    /// How often this node has checked the store for changes by other nodes.
    pub(crate) looks: AtomicU64,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The documents that users keep, where the configuration names a source.
    pub(crate) saved: OnceLock<HashMap<SeriesName, Box<dyn Saved>>>,
    pub(crate) pools: OnceLock<HashMap<SeriesName, Arc<KeptPools>>>,
    pub(crate) retired_memory: parking_lot::Mutex<HashMap<SeriesName, Arc<Memory>>>,
}

impl<S: Store> Machine<S> {
    /// Opens the series on a store: pins those that are new, compares those that are not.
    pub async fn open(
        store: Arc<S>,
        specs: Vec<SeriesSpec>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, MachineError> {
        let store = Measured::new(store, runtime.clone());
        let registry = open_all(&store, specs).await?;
        Ok(Self {
            dispenser: Dispenser::on(store),
            registry: ArcSwap::from_pointee(registry),
            changing: Mutex::default(),
            looks: AtomicU64::new(0),
            runtime,
            saved: OnceLock::new(),
            pools: OnceLock::new(),
            retired_memory: parking_lot::Mutex::default(),
        })
    }

    pub fn registry(&self) -> Guard<Arc<Registry>> {
        self.registry.load()
    }

    pub fn named(&self, name: &str) -> Option<Arc<Entry>> {
        self.registry().named(name).cloned()
    }

    /// Also finds a series that another node has just made.
    pub async fn named_anywhere(&self, name: &str) -> Option<Arc<Entry>> {
        if self.named(name).is_none() {
            // A store that cannot be asked knows no more than this node. Others may have followed meanwhile.
            let _ = self.follow().await;
        }
        self.named(name)
    }

    /// No key belongs to two series.
    pub fn of_key(&self, key: &str) -> Option<Arc<Entry>> {
        self.registry().of_key(key).cloned()
    }

    /// The next `count` numbers of a scope; fewer (at least one) where the space ends or the store fails on the way.
    pub async fn next(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        count: u64,
        by: By<'_>,
    ) -> Result<Numbers, NextError> {
        let open = self.open_scope(entry, name)?;
        let unclaimed = self.draw(&open, count, false).await?;
        self.record(&open.place, unclaimed.get(), by).await?;
        let numbers = unclaimed.claim().numbers;
        entry.counts.add_issued(numbers.len() as u64);
        Ok(numbers)
    }

    /// The next `count` positions of a scope, without a hole: all of them, or an error.
    pub async fn take(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        count: u64,
        by: By<'_>,
    ) -> Result<Taken, NextError> {
        let open = self.open_scope(entry, name)?;
        let taken = self.positions(&open, Wanted::Run(count)).await?;
        let unclaimed = Unclaimed::new(self, &open.place, taken);
        self.record_taken(&open, unclaimed.get(), by).await?;
        entry.counts.add_issued(count);
        Ok(unclaimed.claim())
    }

    pub(crate) fn open_scope<'e>(
        &self,
        entry: &'e Entry,
        name: ScopeName<'_>,
    ) -> Result<OpenScope<'e>, ScopeRefused> {
        entry.scope(name, || self.runtime.now())
    }

    /// Takes positions from memory, or else from the store.
    pub(crate) async fn positions(&self, open: &OpenScope<'_>, wanted: Wanted) -> Result<Taken, IssueError> {
        let (entry, key) = (open.entry, open.key());
        if let Some(taken) = self.dispenser.try_take_wanted(&entry.series, key.as_str(), wanted) {
            return Ok(taken);
        }
        entry.counts.add_wait();
        let mut answer = self.dispenser.take_wanted(&entry.series, key, wanted).await;
        let mut asked = entry.series.clone();
        // The limits were changed meanwhile: the series in its place has the same cursors.
        while let Err(error) = &answer
            && error.is_outdated()
            && let Some(current) = self.in_place_of(&asked).await
        {
            asked = current.series.clone();
            answer = self.dispenser.take_wanted(&asked, key, wanted).await;
        }
        answer
    }

    /// Whether the machine is open and its store can be written.
    pub async fn check(&self) -> Result<(), MachineError> {
        if self.dispenser.is_closing() {
            return Err(MachineError::Stopping);
        }
        let probed = self.store().probe().await;
        self.dispenser.keep_up();
        Ok(probed?)
    }

    /// How much each series holds in memory. Walks all scopes there.
    pub fn levels(&self) -> HashMap<SeriesName, Level> {
        self.dispenser.levels()
    }

    pub fn latency(&self) -> &Latency {
        self.store().latency()
    }

    pub(crate) fn store(&self) -> &Measured<S> {
        self.dispenser.store()
    }

    pub fn is_shared(&self) -> bool {
        self.store().is_shared()
    }

    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.runtime.elapsed()
    }

    /// Changes whenever ranges granted earlier must not be used: the store was restored, or they were recalled.
    pub(crate) fn generation(&self) -> u64 {
        self.store().era() + self.dispenser.recalls_answered()
    }

    pub fn now(&self) -> jiff::Timestamp {
        self.runtime.now()
    }

    /// Refuses new calls, lets those under way end, and gives unused positions back.
    pub async fn close(&self) -> Closed {
        self.dispenser.close().await
    }

    /// Evicts the scopes that no caller used since the last call.
    pub async fn evict_idle(&self) -> Closed {
        self.dispenser.evict_idle().await
    }
}

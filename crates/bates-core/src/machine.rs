//! The numbering machine: series opened on a store. Decides for all front ends: series of a key, scope, text of a number.

mod cached;
mod listed;
mod numbers;
mod peek;
mod take;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use parking_lot::RwLock;
use tokio::sync::Mutex;

use crate::audit::Actor;
use crate::caller::TokenSet;
use crate::code::ErrorCode;
use crate::counts::Latency;
use crate::dispenser::{Dispenser, HeldLevel, ReleaseReport, TakeRequest, TakeResult};
use crate::error::IssueError;
use crate::gap::DocumentSource;
use crate::pool::PoolSet;
use crate::range::TakenPositions;
use crate::runtime::Runtime;
use crate::scope::{ScopeError, ScopeParams};
use crate::series::{
    Caching, MachineError, MachineResult, OpenScope, Registry, SeriesEntry, SeriesName, SeriesSpec,
    SeriesSync, open_all,
};
use crate::store::{MeasuredStore, Store};
pub(crate) use take::{NumberedRange, REJECTED_MAX, TakenNumbers, UnclaimedPositions};

pub use cached::{NotCached, PoppedNumbers, PreparedScope};
pub use listed::{ListError, ListRequest};
pub use numbers::Numbers;
pub use peek::{IdentifierMatch, Peek};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NextError {
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The positions are skipped for good.
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected { positions: u64 },
}

impl NextError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Scope(refused) => refused.code(),
            Self::Issue(error) => error.code(),
            Self::AllRejected { .. } => ErrorCode::ALL_REJECTED,
        }
    }
}

pub struct Machine<S> {
    pub(crate) dispenser: Dispenser<S>,
    pub(crate) registry: ArcSwap<Registry>,
    /// Serializes changes of the registry.
    pub(crate) series_sync: Mutex<SeriesSync>,
    /// How often this node has checked the store for changes by other nodes.
    pub(crate) sync_count: AtomicU64,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The user's own documents, where the configuration names a source.
    pub(crate) document_sources: OnceLock<HashMap<SeriesName, Box<dyn DocumentSource>>>,
    pub(crate) pools: RwLock<BTreeMap<SeriesName, Arc<PoolSet>>>,
    pub(crate) tokens: ArcSwap<TokenSet>,
    /// One reader of the store's tokens at a time.
    pub(crate) tokens_loading: Mutex<()>,
    pub(crate) tokens_adding: Mutex<()>,
    /// For a later ordered series of the same name.
    pub(crate) retired_caching: parking_lot::Mutex<HashMap<SeriesName, Arc<Caching>>>,
}

impl<S: Store> Machine<S> {
    /// Opens the series on a store: pins the definitions of new ones, and compares the others with their pins.
    pub async fn open(
        store: Arc<S>,
        specs: Vec<SeriesSpec>,
        runtime: Arc<dyn Runtime>,
    ) -> MachineResult<Self> {
        let store = MeasuredStore::new(store, runtime.clone());
        let registry = open_all(&store, specs).await?;
        Ok(Self {
            dispenser: Dispenser::with_store(store),
            registry: ArcSwap::from_pointee(registry),
            series_sync: Mutex::default(),
            sync_count: AtomicU64::new(0),
            runtime,
            document_sources: OnceLock::new(),
            pools: RwLock::default(),
            tokens: ArcSwap::from_pointee(TokenSet::from([])),
            tokens_loading: Mutex::default(),
            tokens_adding: Mutex::default(),
            retired_caching: parking_lot::Mutex::default(),
        })
    }

    pub fn registry(&self) -> Guard<Arc<Registry>> {
        self.registry.load()
    }

    pub fn series(&self, name: &str) -> Option<Arc<SeriesEntry>> {
        self.registry().get(name).cloned()
    }

    /// Also finds a series that another node has just created.
    pub async fn series_or_sync(&self, name: &str) -> Option<Arc<SeriesEntry>> {
        let known = self.series(name);
        if known.is_some() {
            return known;
        }
        // If the store cannot be read, use what this node knows.
        let _ = self.sync_series().await;
        self.series(name)
    }

    /// No key belongs to two series.
    pub fn series_by_key(&self, key: &str) -> Option<Arc<SeriesEntry>> {
        self.registry().get_by_key(key).cloned()
    }

    /// The next `count` numbers of a scope; fewer (at least one) if the space ends or the store fails meanwhile.
    pub async fn next(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        count: u64,
        actor: Actor<'_>,
    ) -> Result<Numbers, NextError> {
        let open = self.open_scope(entry, params)?;
        let unclaimed = self.take_numbers(&open, count, false).await?;
        self.record_numbers(&open.scope_id, unclaimed.get(), actor).await?;
        let numbers = unclaimed.claim().numbers;
        entry.counts.add_issued(numbers.len() as u64);
        Ok(numbers)
    }

    /// The next `count` positions of a scope in one range, or an error.
    pub async fn take(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        count: u64,
        actor: Actor<'_>,
    ) -> Result<TakenPositions, NextError> {
        let open = self.open_scope(entry, params)?;
        let taken = self.take_positions(&open, TakeRequest::Run(count)).await?;
        let unclaimed = UnclaimedPositions::new(self, &open.scope_id, taken);
        self.record_positions(&open, unclaimed.get(), actor).await?;
        entry.counts.add_issued(count);
        Ok(unclaimed.claim())
    }

    pub(crate) fn open_scope<'e>(
        &self,
        entry: &'e SeriesEntry,
        params: ScopeParams<'_>,
    ) -> Result<OpenScope<'e>, ScopeError> {
        entry.open_scope(params, || self.runtime.now())
    }

    /// Takes positions from memory, or else from the store.
    pub(crate) async fn take_positions(&self, open: &OpenScope<'_>, wanted: TakeRequest) -> TakeResult {
        let (entry, key) = (open.entry, open.key());
        if let Some(taken) = self.dispenser.try_take_request(&entry.series, key.as_str(), wanted) {
            return Ok(taken);
        }
        entry.counts.add_wait();
        let mut answer = self.dispenser.take_request(&entry.series, key, wanted).await;
        let mut series = entry.series.clone();
        // The series was changed meanwhile: its replacement has the same cursors.
        while let Err(error) = &answer
            && error.is_outdated()
            && let Some(current) = self.replacement_of(&series).await
        {
            series = current.series.clone();
            answer = self.dispenser.take_request(&series, key, wanted).await;
        }
        answer
    }

    /// Whether the machine is open and its store can be written.
    pub async fn check(&self) -> MachineResult<()> {
        if self.dispenser.is_closing() {
            return Err(MachineError::Stopping);
        }
        let probed = self.store().probe().await;
        self.dispenser.discard_if_restored();
        Ok(probed?)
    }

    /// How much each series holds in memory. Walks all scopes there.
    pub fn levels(&self) -> HashMap<SeriesName, HeldLevel> {
        self.dispenser.levels()
    }

    pub fn latency(&self) -> &Latency {
        self.store().latency()
    }

    pub(crate) fn store(&self) -> &MeasuredStore<S> {
        self.dispenser.store()
    }

    pub fn is_shared(&self) -> bool {
        self.store().is_shared()
    }

    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.runtime.elapsed()
    }

    /// Changes whenever earlier ranges must no longer be used: the store was restored, or they were recalled.
    pub(crate) fn generation(&self) -> u64 {
        self.store().era() + self.dispenser.recalls_answered()
    }

    pub fn now(&self) -> jiff::Timestamp {
        self.runtime.now()
    }

    /// New scopes beyond about this many in memory are refused until idle ones leave it.
    pub fn limit_scopes(&self, scopes_max: usize) {
        self.dispenser.limit_scopes(scopes_max);
    }

    /// Refuses new calls, lets those under way end, and releases unused positions.
    pub async fn close(&self) -> ReleaseReport {
        self.dispenser.close().await
    }

    /// As [`Self::close`]; what cannot be released within `time` is skipped, as after a crash.
    pub async fn close_within(&self, time: std::time::Duration) -> ReleaseReport {
        self.dispenser.close_within(time).await
    }

    /// Evicts the scopes that no caller used since the last call.
    pub async fn evict_idle(&self) -> ReleaseReport {
        self.dispenser.evict_idle().await
    }
}

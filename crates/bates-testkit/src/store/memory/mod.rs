//! A store in memory: the whole port by load, decide and apply, as every store does it. A third store would start
//! from it. Must never ship.

mod audit;
mod caller;
mod cursor;
mod document;
mod faults;
mod gap;
mod lease;
mod moving;
mod node;
mod operation;
mod pool;
mod scope;
mod series;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bates_core::ledger::IdempotencyKey;
use bates_core::{
    AuditRecord, CallerToken, ChainHead, ClientLease, Definition, Gap, GapReason, MoveMark, OperationRecord,
    Pool, PositionRange, Runtime, ScopeId, SeriesName, StoreError, SystemRuntime,
};
use jiff::Timestamp;
use uuid::Uuid;

use document::{DocumentRow, KeyRow};
use faults::Faults;
use scope::ScopeRow;

pub use faults::Fault;

/// A process that has opened a store in memory. Clones are the same process, which crashes when the last is dropped.
#[derive(Clone)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    node: Arc<Node>,
    runtime: Arc<dyn Runtime>,
    is_shared: bool,
    /// The longest time that a grant takes.
    latency: Duration,
}

/// One process.
struct Node {
    id: Uuid,
    faults: Faults,
}

/// The durable data, shared by all processes.
#[derive(Default)]
struct Data {
    identity: Uuid,
    series: BTreeMap<SeriesName, SeriesRow>,
    scopes: BTreeMap<ScopeId, ScopeRow>,
    documents: BTreeMap<Uuid, DocumentRow>,
    keys: BTreeMap<IdempotencyKey, KeyRow>,
    gaps: BTreeMap<(ScopeId, u64), Gap>,
    records: BTreeMap<(Timestamp, Uuid), AuditRecord>,
    tokens: BTreeMap<Box<str>, CallerToken>,
    /// By caller, the last day (since 1970) and how much it drew then.
    quotas: BTreeMap<Box<str>, (i64, u64)>,
    /// By chain and number.
    operations: BTreeMap<(Box<str>, u64), OperationRecord>,
    chains: BTreeMap<Box<str>, ChainHead>,
    client_leases: BTreeMap<Uuid, ClientLease>,
    pools: BTreeMap<ScopeId, Pool>,
    nodes: BTreeMap<Uuid, NodeRow>,
    mark: Option<MoveMark>,
    /// Counts changes of descriptions, promises and tokens.
    revision: u64,
    /// The epoch of the last recall.
    recalls: u64,
}

struct SeriesRow {
    definition: Definition,
    permutation_key: Option<Vec<u8>>,
    description: Option<Box<str>>,
    epoch: u64,
    floor: u64,
    reconciled_at: Option<Timestamp>,
}

struct NodeRow {
    process: Weak<Node>,
    /// The last recall before the process started.
    started_at: u64,
    /// By series, the last recall that the process has answered.
    answered: BTreeMap<SeriesName, u64>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(false, Arc::new(SystemRuntime))
    }
}

impl MemoryStore {
    fn new(is_shared: bool, runtime: Arc<dyn Runtime>) -> Self {
        let data = Data { identity: runtime.new_id(), ..Data::default() };
        Self::on(Arc::new(Mutex::new(data)), Faults::default(), is_shared, runtime)
    }

    fn on(data: Arc<Mutex<Data>>, faults: Faults, is_shared: bool, runtime: Arc<dyn Runtime>) -> Self {
        let node = Arc::new(Node { id: runtime.new_id(), faults });
        {
            let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
            let row = NodeRow {
                process: Arc::downgrade(&node),
                started_at: data.recalls,
                answered: BTreeMap::new(),
            };
            data.nodes.insert(node.id, row);
        }
        Self { data, node, runtime, is_shared, latency: Duration::ZERO }
    }

    /// A store that several processes issue from.
    pub fn shared() -> Self {
        Self::new(true, Arc::new(SystemRuntime))
    }

    /// A store with the clock and the randomness of a test.
    pub fn with_runtime(runtime: Arc<dyn Runtime>) -> Self {
        Self::new(false, runtime)
    }

    /// Delays each grant by a random time up to this.
    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Another process on the same data, with its own faults.
    #[must_use]
    pub fn node(&self) -> Self {
        Self::on(self.data.clone(), Faults::default(), self.is_shared, self.runtime.clone())
    }

    /// Another process on the same data, whose grants wait for [`MemoryStore::let_through`].
    #[must_use]
    pub fn gated_node(&self) -> Self {
        Self::on(self.data.clone(), Faults::gated(), self.is_shared, self.runtime.clone())
    }

    /// Positions that were taken from a range but reached no caller.
    pub fn burned(&self) -> Vec<(ScopeId, PositionRange)> {
        self.lost_for(GapReason::Burned)
    }

    /// Positions that a process held and gave up unused.
    pub fn given_up(&self) -> Vec<(ScopeId, PositionRange)> {
        self.lost_for(GapReason::LeaseLost)
    }

    fn lost_for(&self, reason: GapReason) -> Vec<(ScopeId, PositionRange)> {
        let data = self.data();
        let lost = data.scopes.iter().flat_map(|(scope_id, scope)| {
            let lost = scope.lost.iter().filter(|lost| lost.reason == reason);
            lost.map(|lost| (scope_id.clone(), lost.range))
        });
        lost.collect()
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Data {
    fn series(&self, series: &SeriesName) -> Result<&SeriesRow, StoreError> {
        self.series.get(series).ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))
    }

    fn series_mut(&mut self, series: &SeriesName) -> Result<&mut SeriesRow, StoreError> {
        self.series.get_mut(series).ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))
    }

    /// Whether a process is still running. A store that is not shared has only one process.
    fn is_alive(&self, node: Uuid, process: &MemoryStore) -> bool {
        let is_running = self.nodes.get(&node).is_some_and(|row| row.process.strong_count() > 0);
        node == process.node.id || process.is_shared && is_running
    }
}

/// A page of the entries after a key, in the order of the map.
fn page<K: Ord + Clone, V, T>(
    map: &BTreeMap<K, V>,
    after: Option<K>,
    limit: usize,
    read: impl FnMut((&K, &V)) -> Option<T>,
) -> Vec<T> {
    let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
    map.range((from, std::ops::Bound::Unbounded)).filter_map(read).take(limit).collect()
}

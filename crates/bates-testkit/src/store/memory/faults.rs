//! Injects faults into the grants of one process: a grant fails before or after its write, waits until a test lets it
//! through, or finds that the store was restored from an old backup.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bates_core::{Grant, GrantError, GrantRequest, ScopeId, StoreError};
use tokio::sync::Semaphore;

use super::MemoryStore;

/// What happens to a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It fails, and nothing is written.
    BeforeWrite,
    /// It is written, but the answer is lost, as after a crash or a cut connection.
    AfterWrite,
}

#[derive(Default)]
pub(super) struct Faults {
    script: Mutex<VecDeque<Fault>>,
    /// `None` lets every grant through.
    gate: Option<Semaphore>,
    seen: Mutex<Seen>,
    is_restored: AtomicBool,
    refuses_records: AtomicBool,
}

#[derive(Default)]
struct Seen {
    counts: Vec<u64>,
    held_from: Vec<Option<u64>>,
    running: BTreeMap<ScopeId, usize>,
    concurrent_max: usize,
}

/// A grant that is under way.
pub(super) struct Granting<'f> {
    faults: &'f Faults,
    scope_id: ScopeId,
}

impl MemoryStore {
    /// Plans one fault for each of the next grants, in order; later grants succeed.
    pub fn plan(&self, faults: &[Fault]) {
        lock(&self.node.faults.script).extend(faults);
    }

    /// Behaves from now on like a database restored from an old backup: it grants nothing, and says why.
    pub fn mark_restored(&self) {
        self.node.faults.is_restored.store(true, Ordering::SeqCst);
    }

    /// Refuses audit records from now on, or accepts them again.
    pub fn refuse_records(&self, refuses: bool) {
        self.node.faults.refuses_records.store(refuses, Ordering::SeqCst);
    }

    /// Lets this many grants through.
    pub fn let_through(&self, grants: usize) {
        if let Some(gate) = &self.node.faults.gate {
            gate.add_permits(grants);
        }
    }

    /// How many positions each grant so far requested.
    pub fn counts(&self) -> Vec<u64> {
        lock(&self.node.faults.seen).counts.clone()
    }

    /// The first position still held that each grant so far named.
    pub fn held_from(&self) -> Vec<Option<u64>> {
        lock(&self.node.faults.seen).held_from.clone()
    }

    /// The highest number of concurrent grants in one scope.
    pub fn concurrent_max(&self) -> usize {
        lock(&self.node.faults.seen).concurrent_max
    }
}

impl Faults {
    pub(super) fn gated() -> Self {
        Self { gate: Some(Semaphore::new(0)), ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_restored = self.is_restored.load(Ordering::SeqCst);
        if is_restored { Err(StoreError::Poisoned("restored by a test".into())) } else { Ok(()) }
    }

    pub(super) fn check_records(&self) -> Result<(), StoreError> {
        let refuses = self.refuses_records.load(Ordering::SeqCst);
        if refuses { Err(StoreError::Unavailable("refused by a test".into())) } else { Ok(()) }
    }

    pub(super) async fn begin(&self, request: &GrantRequest) -> Granting<'_> {
        let granting = Granting { faults: self, scope_id: request.scope_id.clone() };
        {
            let mut seen = lock(&self.seen);
            seen.counts.push(request.count);
            seen.held_from.push(request.held_from);
            let running = seen.running.entry(request.scope_id.clone()).or_default();
            *running += 1;
            let running = *running;
            seen.concurrent_max = seen.concurrent_max.max(running);
        }
        if let Some(gate) = &self.gate {
            gate.acquire().await.expect("the gate is never closed").forget();
        }
        granting
    }
}

impl Granting<'_> {
    pub(super) fn end(self, grant: impl FnOnce() -> Result<Grant, GrantError>) -> Result<Grant, GrantError> {
        let fault = lock(&self.faults.script).pop_front().unwrap_or(Fault::None);
        let failed = || GrantError::Store(StoreError::Unavailable("planned by a test".into()));
        match fault {
            Fault::None => self.faults.check().map_err(Into::into).and_then(|()| grant()),
            Fault::BeforeWrite => Err(failed()),
            Fault::AfterWrite => grant().and(Err(failed())),
        }
    }
}

impl Drop for Granting<'_> {
    fn drop(&mut self) {
        if let Some(running) = lock(&self.faults.seen).running.get_mut(&self.scope_id) {
            *running -= 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

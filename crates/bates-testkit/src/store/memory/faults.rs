//! Faults of one process: grants that fail before they are written or after, wait until a test lets them through, or find
//! that the store was taken back.

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
    /// It is written, and its answer is lost: a crash, or a cut connection.
    AfterWrite,
}

#[derive(Default)]
pub(super) struct Faults {
    script: Mutex<VecDeque<Fault>>,
    /// `None` lets every grant through.
    gate: Option<Semaphore>,
    seen: Mutex<Seen>,
    is_taken_back: AtomicBool,
    refuses_records: AtomicBool,
}

#[derive(Default)]
struct Seen {
    counts: Vec<u64>,
    held_from: Vec<Option<u64>>,
    running: BTreeMap<ScopeId, usize>,
    running_most: usize,
}

/// A grant that is under way.
pub(super) struct Granting<'f> {
    faults: &'f Faults,
    scope_id: ScopeId,
}

impl MemoryStore {
    /// What happens to the next grants, in their order; those after them succeed.
    pub fn plan(&self, faults: &[Fault]) {
        lock(&self.node.faults.script).extend(faults);
    }

    /// As a database that was restored from an old backup: it grants nothing, and says why.
    pub fn take_back(&self) {
        self.node.faults.is_taken_back.store(true, Ordering::SeqCst);
    }

    /// From now on it keeps no record of the audit, or does so again.
    pub fn refuse_records(&self, refuses: bool) {
        self.node.faults.refuses_records.store(refuses, Ordering::SeqCst);
    }

    /// Lets this many grants through.
    pub fn let_through(&self, grants: usize) {
        if let Some(gate) = &self.node.faults.gate {
            gate.add_permits(grants);
        }
    }

    /// How many positions each grant so far asked for.
    pub fn counts(&self) -> Vec<u64> {
        lock(&self.node.faults.seen).counts.clone()
    }

    /// What each grant so far was told to be the first position that is still held.
    pub fn held_from(&self) -> Vec<Option<u64>> {
        lock(&self.node.faults.seen).held_from.clone()
    }

    /// How many grants of one place were under way together, at the most.
    pub fn running_most(&self) -> usize {
        lock(&self.node.faults.seen).running_most
    }
}

impl Faults {
    pub(super) fn gated() -> Self {
        Self { gate: Some(Semaphore::new(0)), ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_taken_back = self.is_taken_back.load(Ordering::SeqCst);
        if is_taken_back { Err(StoreError::Poisoned("taken back by a test".into())) } else { Ok(()) }
    }

    pub(super) fn check_records(&self) -> Result<(), StoreError> {
        let refuses = self.refuses_records.load(Ordering::SeqCst);
        if refuses { Err(StoreError::Unavailable("no room, says a test".into())) } else { Ok(()) }
    }

    pub(super) async fn begin(&self, want: &GrantRequest) -> Granting<'_> {
        let granting = Granting { faults: self, scope_id: want.scope_id.clone() };
        {
            let mut seen = lock(&self.seen);
            seen.counts.push(want.count);
            seen.held_from.push(want.held_from);
            let running = seen.running.entry(want.scope_id.clone()).or_default();
            *running += 1;
            let running = *running;
            seen.running_most = seen.running_most.max(running);
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

//! Background tasks of the dispenser, above all refills, which fetch positions from the store for one cell.
//!
//! Invariant: a cell whose refill began learns that it ended, also if the task is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::sync::oneshot::Receiver;

use super::Inner;
use super::cell::{Cell, RefillRequest};
use super::shards::CellId;
use crate::ledger::{Grant, GrantError, GrantPurpose, GrantRequest};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::Series;
use crate::store::{Store, StoreError};

impl<S: Store> Inner<S> {
    /// Runs work in the background. Invariant: `close` waits until it no longer uses the store.
    pub(super) fn spawn<F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F) -> Receiver<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (work, counted) = (work(self.clone()), self.tasks.begin());
        let _inside = self.tokio.enter();
        self.store.runtime().spawn_for(async move {
            let output = work.await;
            drop(counted);
            output
        })
    }

    /// Fetches positions in the background, as long as the cell requests more.
    #[inline]
    pub(super) fn start_refill(self: &Arc<Self>, refill: Option<RefillRequest>) {
        if let Some(refill) = refill {
            self.spawn_refill(refill);
        }
    }

    #[cold]
    fn spawn_refill(self: &Arc<Self>, refill: RefillRequest) {
        let task = self.begin_task(&refill);
        let _inside = self.tokio.enter();
        self.store.runtime().spawn(Box::pin(task.run(refill)));
    }

    /// Fetches the first positions of many scopes together.
    pub(super) fn start_first_refills(self: &Arc<Self>, refills: Vec<RefillRequest>) {
        if refills.is_empty() {
            return;
        }
        let cells = refills.iter().map(|refill| (refill.series.clone(), refill.scope_id.clone())).collect();
        let under_way = FirstRefills { inner: self.clone(), cells, ended: 0, _counted: self.tasks.begin() };
        let requests = refills.into_iter().map(|refill| self.grant_request(refill)).collect();
        let _inside = self.tokio.enter();
        self.store.runtime().spawn(Box::pin(under_way.run(requests)));
    }

    fn begin_task(self: &Arc<Self>, refill: &RefillRequest) -> RefillTask<S> {
        RefillTask {
            scope_id: refill.scope_id.clone(),
            series: refill.series.clone(),
            is_under_way: true,
            inner: self.clone(),
            _counted: self.tasks.begin(),
        }
    }

    /// Tells a cell that its refill ended. Returns what to fetch next.
    fn end_refill(
        &self,
        series: &Series,
        scope: &ScopeKey,
        outcome: Result<Grant, GrantError>,
    ) -> Option<RefillRequest> {
        // Invariant: a cell with a refill under way is not removed, so it exists. A cell whose first grant failed is
        // removed, so that a careless client fills no memory.
        let refilled = |cell: &mut Cell| {
            if let (true, Ok(grant)) = (cell.is_refill_discarded(), &outcome) {
                self.given_up.add(cell.scope_id(), [grant.range]);
            }
            cell.finish_refill(outcome)
        };
        self.shards.visit_then_prune(CellId { series, scope: scope.as_str() }, refilled).flatten()
    }

    /// Ranges that a cell gave up for a run are released before the run is fetched.
    async fn fetch(&self, mut refill: RefillRequest) -> Result<Grant, GrantError> {
        let release = refill.release.take();
        let request = self.grant_request(refill);
        if let Some(release) = release {
            self.release(release, self.era.load(Ordering::Acquire)).await?;
        }
        self.store.grant(request).await
    }

    fn grant_request(&self, refill: RefillRequest) -> GrantRequest {
        let RefillRequest { scope_id, series, count, count_needed, held_from, .. } = refill;
        let held_from = self.given_up.held_from(&scope_id, held_from);
        let request = series.grant_request(scope_id, count, GrantPurpose::Hold);
        GrantRequest { count_needed, held_from, ..request }
    }
}

struct RefillTask<S: Store> {
    inner: Arc<Inner<S>>,
    scope_id: ScopeId,
    series: Series,
    is_under_way: bool,
    // Invariant: the last field, so that the task counts until it no longer uses the store.
    _counted: TaskGuard,
}

impl<S: Store> RefillTask<S> {
    async fn run(mut self, refill: RefillRequest) {
        let mut next = Some(refill);
        while let Some(refill) = next {
            let outcome = self.inner.fetch(refill).await;
            self.inner.discard_if_restored();
            next = self.end(outcome);
        }
    }

    /// Returns what to fetch next.
    fn end(&mut self, outcome: Result<Grant, GrantError>) -> Option<RefillRequest> {
        self.is_under_way = false;
        let next = self.inner.end_refill(&self.series, &self.scope_id.scope, outcome);
        self.inner.tasks.ended.notify_waiters();
        self.is_under_way = next.is_some();
        next
    }
}

/// If the task is dropped with its runtime, the refill fails, so that no caller waits for ever. If the store had granted
/// it, it counts as held by this process, as after a crash.
impl<S: Store> Drop for RefillTask<S> {
    fn drop(&mut self) {
        if self.is_under_way {
            self.end(Err(StoreError::RuntimeEnded.into()));
        }
    }
}

/// Refills of many scopes with one call of the store, each the first of its cell.
struct FirstRefills<S: Store> {
    inner: Arc<Inner<S>>,
    cells: Vec<(Series, ScopeId)>,
    /// How many of the cells know that their refill ended.
    ended: usize,
    // Invariant: the last field, as in a RefillTask.
    _counted: TaskGuard,
}

impl<S: Store> FirstRefills<S> {
    async fn run(mut self, requests: Vec<GrantRequest>) {
        let granted = self.inner.store.grant_all(requests, &self.cells).await;
        self.inner.discard_if_restored();
        for outcome in granted {
            self.end_next(outcome);
        }
    }

    fn end_next(&mut self, outcome: Result<Grant, GrantError>) {
        let (series, scope_id) = &self.cells[self.ended];
        self.ended += 1;
        let next = self.inner.end_refill(series, &scope_id.scope, outcome);
        self.inner.start_refill(next);
    }
}

/// As for a [`RefillTask`].
impl<S: Store> Drop for FirstRefills<S> {
    fn drop(&mut self) {
        while self.ended < self.cells.len() {
            self.end_next(Err(StoreError::RuntimeEnded.into()));
        }
    }
}

/// Counts tasks that use the store, and signals each end: `close` waits for the last.
#[derive(Default)]
pub(super) struct TaskCount {
    count: AtomicUsize,
    ended: Notify,
}

pub(super) struct TaskGuard(Arc<TaskCount>);

impl TaskCount {
    pub(super) fn begin(self: &Arc<Self>) -> TaskGuard {
        self.count.fetch_add(1, Ordering::AcqRel);
        TaskGuard(self.clone())
    }

    pub(super) fn are_under_way(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Completes when a refill or another task ends.
    pub(super) fn ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Waits until no task runs. The caller must prevent new ones.
    pub(super) async fn all_ended(&self) {
        loop {
            let ended = self.ended();
            if !self.are_under_way() {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_waiters();
    }
}

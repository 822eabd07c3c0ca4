//! Serves the calls that wait at a node together, one transaction per batch, with several batches under way. Owns the
//! answers, and the handling of commits whose outcome is unknown.
//!
//! Invariant: a caller gets positions only once their commit is known to have succeeded.

mod attempt;
pub(crate) mod document;
mod queue;
pub(crate) mod sql;
mod unknown;
mod writes;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bates_core::ledger::{Outcome, Request};
use bates_core::{DocumentContent, ScopeId, StoreError, StoreResult};
use deadpool_postgres::Pool;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::connect::Settings;
use crate::error::{Failure, OpenError};
use crate::lineage::{self, COMMITS_MISSING, Lineage};
use crate::retry::Backoff;
use crate::session::with_session;
use attempt::{AttemptError, Decisions, attempt};
use queue::{Batch, Group, Queue, QueueItem};
use writes::CURSOR_MOVED_BACK;

/// The parts of the store that its batches use too.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) settings: Settings,
    pub(crate) lineage: Lineage,
    queue: Mutex<Queue<Job>>,
}

struct Job {
    request: Request,
    /// The era in which it was submitted.
    era: u64,
    answer: oneshot::Sender<Outcome>,
}

/// Batches usually end within some milliseconds.
const STALLED_AFTER: Duration = Duration::from_millis(10);

/// A generous estimate of the bytes of a document besides its body: number, key, ledger and indexes.
const ROW_BYTES: usize = 4_096;

impl QueueItem for Job {
    fn bytes(&self) -> usize {
        let Request::Assign(assign) = &self.request else { return 0 };
        match &assign.content {
            DocumentContent::Document(body) => body.len() + ROW_BYTES,
            DocumentContent::Reservation(_) => ROW_BYTES,
        }
    }

    /// Invariant: before the cursors are locked, keys are inserted, and it is settled from where adopted positions are read.
    /// So a request with a key, or one that moves the cursor back, must come before the locks.
    fn may_join_late(&self) -> bool {
        match &self.request {
            Request::Grant(_) => true,
            Request::Assign(assign) => assign.idempotency.is_none(),
            _ => false,
        }
    }
}

impl Job {
    /// The range of a caller that no longer waits becomes a gap.
    fn send(self, outcome: Outcome) {
        let _ = self.answer.send(outcome);
    }

    fn fail(self, error: StoreError) {
        let outcome = self.request.failed(error);
        self.send(outcome);
    }
}

impl Group<Job> {
    fn drop_abandoned(&mut self) {
        self.jobs.retain(|job| !job.answer.is_closed());
    }

    /// A range that was granted in an earlier era becomes a gap: in a restored database, a grant to another caller may have
    /// the same version. No cursor has version 0, so the cursor stays.
    fn void_old_releases(&mut self, era: u64) {
        for job in self.jobs.iter_mut().filter(|job| job.era != era) {
            if let Request::Release(release) = &mut job.request {
                release.version = 0;
            }
        }
    }

    fn has_callers(&mut self) -> bool {
        self.drop_abandoned();
        !self.jobs.is_empty()
    }
}

impl Shared {
    pub(crate) fn new(pool: Pool, settings: Settings, lineage: Lineage) -> Self {
        let queue = Mutex::new(Queue::new(settings.connections));
        Self { pool, settings, lineage, queue }
    }

    /// Joins the next batch. Fails if the batch was dropped with its runtime.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        scope_id: ScopeId,
        request: Request,
    ) -> StoreResult<Outcome> {
        let (answer, receiver) = oneshot::channel();
        let era = self.lineage.era();
        let (batch, begins_to_wait) = {
            let mut queue = self.queue.lock();
            (queue.push(scope_id, Job { request, era, answer }), queue.begins_to_wait())
        };
        if let Some(batch) = batch {
            tokio::spawn(run(self.clone(), batch));
        }
        if begins_to_wait {
            start_relief(self);
        }
        receiver.await.map_err(|_| store_closed())
    }

    /// Stops the other nodes for a reason that only this node has noticed. A reason that comes from the database is not
    /// written: it may be over by now. `accepted_at` is the last acceptance that this node knew before it noticed.
    pub(crate) async fn stop_other_nodes(&self, reason: &str, accepted_at: i64) {
        if ![COMMITS_MISSING, CURSOR_MOVED_BACK].contains(&reason) {
            return;
        }
        let _ = with_session(&self.pool, self.settings, |session| async move {
            lineage::stop(&session, reason, accepted_at).await
        })
        .await;
    }
}

pub(crate) fn store_closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

fn start_relief(shared: &Arc<Shared>) {
    tokio::spawn(relieve(shared.clone()));
}

/// Serves calls that wait for a batch which does not end.
async fn relieve(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(STALLED_AFTER).await;
        let next = shared.queue.lock().relieve();
        match next {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(Some(batch)) => return run(shared, batch).await,
            ControlFlow::Break(None) => return,
        }
    }
}

/// Serves one batch after the other on a line, as long as calls wait.
async fn run(shared: Arc<Shared>, mut batch: Batch<Job>) {
    loop {
        let scope_ids: Vec<ScopeId> = batch.groups.iter().map(|group| group.scope_id.clone()).collect();
        let line = serve(&shared, batch.line, batch.groups).await;
        let (next, begins_to_wait) = {
            let mut queue = shared.queue.lock();
            (queue.ended(line, &scope_ids), queue.begins_to_wait())
        };
        if begins_to_wait {
            start_relief(&shared);
        }
        match next {
            Some(next) => batch = next,
            None => return,
        }
    }
}

/// Serves one batch: first the existing scopes, then the new ones. Returns the line to continue with.
async fn serve(shared: &Arc<Shared>, line: i32, mut groups: Vec<Group<Job>>) -> i32 {
    let mut creates_scopes = false;
    let mut backoff = Backoff::new(shared.settings.timeout);
    loop {
        groups.retain_mut(Group::has_callers);
        if groups.is_empty() {
            return line;
        }
        let accepted_at = shared.lineage.accepted_at();
        match attempt(shared, line, &mut groups, creates_scopes).await {
            Ok(decisions) => {
                groups = answer(groups, decisions);
                creates_scopes = true;
                backoff = Backoff::new(shared.settings.timeout);
            }
            Err(AttemptError::Failed(failure)) => {
                let is_transient = matches!(failure, Failure::Transient(_));
                if !is_transient || !backoff.pause().await {
                    if let Failure::Refused(OpenError::Stopped(reason)) = &failure {
                        shared.stop_other_nodes(reason, accepted_at).await;
                    }
                    fail(groups, &failure.into_store_error());
                    return line;
                }
            }
            Err(AttemptError::Unknown { commit, decisions, reason }) => {
                backoff = Backoff::new(shared.settings.timeout);
                match unknown::resolve(shared, commit, &mut backoff).await {
                    Some(true) => (groups, creates_scopes) = (answer(groups, decisions), true),
                    // It will never be committed, so another attempt issues nothing twice.
                    Some(false) => {}
                    None => {
                        unknown::resolve_in_background(shared, commit, groups, decisions, &reason);
                        return shared.queue.lock().fresh_line();
                    }
                }
            }
        }
    }
}

/// Answers the decided calls, and returns the others.
fn answer(groups: Vec<Group<Job>>, decisions: Decisions) -> Vec<Group<Job>> {
    let mut undecided = Vec::new();
    for (group, decision) in groups.into_iter().zip(decisions) {
        match decision {
            None => undecided.push(group),
            Some(decision) => {
                group.jobs.into_iter().zip(decision.outcomes).for_each(|(job, outcome)| job.send(outcome));
            }
        }
    }
    undecided
}

fn fail(groups: Vec<Group<Job>>, error: &StoreError) {
    groups.into_iter().flat_map(|group| group.jobs).for_each(|job| job.fail(error.clone()));
}

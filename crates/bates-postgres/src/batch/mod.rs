//! Calls that wait at a node are served together, one transaction a batch, with several batches under way. Owns the
//! answers, and what becomes of a commit whose outcome is unknown.
//!
//! Invariant: a caller gets positions only once their commit is known to be there.

mod attempt;
pub(crate) mod document;
mod queue;
pub(crate) mod sql;
mod unknown;
mod writes;

use std::sync::Arc;

use bates_core::ledger::{Outcome, Request};
use bates_core::{DocumentContent, ScopeId, StoreError, StoreResult};
use deadpool_postgres::Pool;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::connect::Settings;
use crate::error::{Failed, OpenError};
use crate::lineage::{self, Lineage, TAKEN_BACK};
use crate::retry::{Patience, retried};
use crate::session::Session;
use attempt::{Broken, Decisions, attempt};
use queue::{Batch, Call, Group, Queue};
use writes::GRANTED_BEFORE;

pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) settings: Settings,
    pub(crate) truth: Lineage,
    queue: Mutex<Queue<Job>>,
}

struct Job {
    request: Request,
    era: u64,
    answer: oneshot::Sender<Outcome>,
}

/// Generous estimate of the rows of a document besides its body: number, key, ledger and indexes.
const ROW_BYTES: usize = 4_096;

impl Call for Job {
    fn bytes(&self) -> usize {
        let Request::Assign(assign) = &self.request else { return 0 };
        match &assign.content {
            DocumentContent::Document(body) => body.len() + ROW_BYTES,
            DocumentContent::Reservation(_) => ROW_BYTES,
        }
    }

    /// Invariant: keys are inserted before cursors are locked, and adopted positions are read from the lowest place of the
    /// cursor. So a request with a key, or one that moves the cursor back, must be there before the locks.
    fn may_board(&self) -> bool {
        match &self.request {
            Request::Grant(_) => true,
            Request::Assign(assign) => assign.idempotency.is_none(),
            _ => false,
        }
    }
}

impl Job {
    /// The range of a caller that no longer waits becomes a gap.
    fn tell(self, outcome: Outcome) {
        let _ = self.answer.send(outcome);
    }

    fn fail(self, error: StoreError) {
        let outcome = self.request.failed(error);
        self.tell(outcome);
    }
}

impl Group<Job> {
    fn leave_out_who_gave_up(&mut self) {
        self.jobs.retain(|job| !job.answer.is_closed());
    }

    /// A range that was granted before the database was restored is a gap: another caller may have it, in a write of the
    /// same version. No cursor has version 0.
    fn leave_tails_of_before(&mut self, era: u64) {
        for job in self.jobs.iter_mut().filter(|job| job.era != era) {
            if let Request::Release(tail) = &mut job.request {
                tail.version = 0;
            }
        }
    }

    fn is_waited_for(&mut self) -> bool {
        self.leave_out_who_gave_up();
        !self.jobs.is_empty()
    }
}

impl Shared {
    pub(crate) fn new(pool: Pool, settings: Settings, truth: Lineage) -> Self {
        let queue = Mutex::new(Queue::new(settings.connections));
        Self { pool, settings, truth, queue }
    }

    /// Joins the next batch. Fails if the batch was dropped with its runtime.
    pub(crate) async fn ask(self: &Arc<Self>, scope_id: ScopeId, request: Request) -> StoreResult<Outcome> {
        let (answer, receiver) = oneshot::channel();
        let era = self.truth.era();
        let batch = self.queue.lock().push(scope_id, Job { request, era, answer });
        if let Some(batch) = batch {
            tokio::spawn(run(self.clone(), batch));
        }
        receiver.await.map_err(|_| closed())
    }

    /// Stops the other nodes for what only this one has seen. A reason that the database itself gives is not written: it
    /// may be over by now. `seen` is the acceptance that this node knew before it looked.
    pub(crate) async fn note_taken_back(&self, reason: &str, seen: i64) {
        if ![TAKEN_BACK, GRANTED_BEFORE].contains(&reason) {
            return;
        }
        let noted = retried(self.settings.patience, || async {
            let session = Session::take(&self.pool, self.settings).await?;
            lineage::stop(&session, reason, seen).await?;
            session.give_back();
            Ok(())
        });
        let _ = noted.await;
    }
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

/// Serves batch after batch on a line, as long as calls wait.
async fn run(shared: Arc<Shared>, mut batch: Batch<Job>) {
    loop {
        let places: Vec<ScopeId> = batch.groups.iter().map(|group| group.scope_id.clone()).collect();
        let line = serve(&shared, batch.line, batch.groups).await;
        let next = shared.queue.lock().ended(line, &places);
        match next {
            Some(next) => batch = next,
            None => return,
        }
    }
}

/// Serves one batch: first the scopes that are there, then those that are not. Answers with the line to go on with.
async fn serve(shared: &Arc<Shared>, line: i32, mut groups: Vec<Group<Job>>) -> i32 {
    let mut makes = false;
    let mut left = Patience::new(shared.settings.patience);
    loop {
        groups.retain_mut(Group::is_waited_for);
        if groups.is_empty() {
            return line;
        }
        let seen = shared.truth.acceptances();
        match attempt(shared, line, &mut groups, makes).await {
            Ok(decisions) => {
                groups = tell(groups, decisions);
                makes = true;
                left = Patience::new(shared.settings.patience);
            }
            Err(Broken::Failed(failed)) => {
                let may_pass = matches!(failed, Failed::Passing(_));
                if !may_pass || !left.pause().await {
                    if let Failed::Refused(OpenError::Stopped(reason)) = &failed {
                        shared.note_taken_back(reason, seen).await;
                    }
                    fail(groups, &failed.into_store_error());
                    return line;
                }
            }
            Err(Broken::Unknown { entry, decisions, reason }) => {
                left = Patience::new(shared.settings.patience);
                match unknown::decide(shared, entry, &mut left).await {
                    Some(true) => (groups, makes) = (tell(groups, decisions), true),
                    // It never will be committed: another try gives nothing twice.
                    Some(false) => {}
                    None => {
                        unknown::give_up(shared, entry, groups, decisions, &reason);
                        return shared.queue.lock().fresh_line();
                    }
                }
            }
        }
    }
}

/// Answers the calls that were decided, and returns the others.
fn tell(groups: Vec<Group<Job>>, decisions: Decisions) -> Vec<Group<Job>> {
    let mut left = Vec::new();
    for (group, decision) in groups.into_iter().zip(decisions) {
        match decision {
            None => left.push(group),
            Some(decision) => {
                group.jobs.into_iter().zip(decision.outcomes).for_each(|(job, outcome)| job.tell(outcome));
            }
        }
    }
    left
}

fn fail(groups: Vec<Group<Job>>, error: &StoreError) {
    groups.into_iter().flat_map(|group| group.jobs).for_each(|job| job.fail(error.clone()));
}

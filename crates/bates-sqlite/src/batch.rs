//! A batch of the writer: requests for positions, which the ledger decides scope by scope, and all other writes.

use bates_core::ledger::{Decision, IdempotencyKeys, Outcome, Request, decide};
use bates_core::{ScopeId, StoreResult};
use rusqlite::{Result, Transaction};
use tokio::sync::oneshot;

use crate::outbox::assign;
use crate::scope::{SeriesRow, StoredScope};
use crate::writer::Write;

pub(crate) struct Call {
    scope_id: ScopeId,
    request: Request,
    /// In milliseconds, by the clock of the store.
    now: i64,
    outcome: Option<Outcome>,
    answer: oneshot::Sender<Outcome>,
}

pub(crate) enum Job {
    Call(Box<Call>),
    Write(Box<dyn Write>),
}

#[derive(Default)]
pub(crate) struct Batch {
    #[expect(clippy::vec_box, reason = "calls arrive boxed, and sorting boxes moves only pointers")]
    calls: Vec<Box<Call>>,
    writes: Vec<Box<dyn Write>>,
}

impl Call {
    pub(crate) fn new(scope_id: ScopeId, request: Request, now: i64) -> (Self, oneshot::Receiver<Outcome>) {
        let (answer, receiver) = oneshot::channel();
        (Self { scope_id, request, now, outcome: None, answer }, receiver)
    }

    fn answer(self, committed: &StoreResult<()>) {
        let outcome = match committed {
            Ok(()) => self.outcome.expect("a committed call was decided"),
            Err(error) => self.request.failed(error.clone()),
        };
        // The range of a caller that no longer waits becomes a gap.
        let _ = self.answer.send(outcome);
    }
}

impl Batch {
    pub(crate) fn push(&mut self, job: Job) {
        match job {
            Job::Call(call) => self.calls.push(call),
            Job::Write(write) => self.writes.push(write),
        }
    }

    /// Called again in another transaction if the commit failed.
    pub(crate) fn apply(&mut self, transaction: &Transaction<'_>, run: i64) -> Result<()> {
        // A stable sort: the requests of a scope keep their order.
        self.calls.sort_by(|one, other| one.scope_id.cmp(&other.scope_id));
        let mut keys = IdempotencyKeys::of(self.calls.iter().map(|call| &call.request));
        if !keys.is_empty() {
            let states = assign::key_states(transaction, &keys)?;
            keys = keys.with_states(states).expect("each key has a state");
        }
        for calls in self.calls.chunk_by_mut(|one, other| one.scope_id.series == other.scope_id.series) {
            let mut series = SeriesRow::default();
            for calls in calls.chunk_by_mut(|one, other| one.scope_id.scope == other.scope_id.scope) {
                apply_scope(transaction, calls, &mut series, &mut keys, run)?;
            }
            series.apply(transaction)?;
        }
        self.writes.iter_mut().try_for_each(|write| write.apply(transaction))
    }

    pub(crate) fn answer(&mut self, committed: &StoreResult<()>) {
        self.calls.drain(..).for_each(|call| call.answer(committed));
        self.writes.drain(..).for_each(|write| write.answer(committed.clone()));
    }
}

fn apply_scope(
    transaction: &Transaction<'_>,
    calls: &mut [Box<Call>],
    series: &mut SeriesRow,
    keys: &mut IdempotencyKeys,
    run: i64,
) -> Result<()> {
    let scope_id = calls[0].scope_id.clone();
    let requests = || calls.iter().map(|call| &call.request);
    let stored = StoredScope::load(transaction, &scope_id, series, requests(), run)?;
    let Decision { outcomes, change } = decide(&stored.before, &scope_id, requests(), keys);
    stored.apply(transaction, series, &change, run)?;
    if let Some(series_id) = stored.series_id {
        for (call, outcome) in calls.iter().zip(&outcomes) {
            if let Some(document) = call.request.new_document(outcome) {
                assign::write(transaction, series_id, document, call.now)?;
            }
        }
    }
    for (call, outcome) in calls.iter_mut().zip(outcomes) {
        call.outcome = Some(outcome);
    }
    Ok(())
}

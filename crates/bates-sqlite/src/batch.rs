//! A batch of the writer: requests for positions, which the ledger decides scope by scope, and all other writes.

use std::hash::BuildHasher as _;

use bates_core::ledger::{BatchState, Decision, Outcome, Request, decide};
use bates_core::{ScopeId, StoreResult};
use foldhash::fast::RandomState;
use rusqlite::{Result, Transaction};
use tokio::sync::oneshot;

use crate::new_scopes::{Change, Merge, NewScopes};
use crate::outbox::assign;
use crate::scope::{ScopeTable, SeriesRow};
use crate::writer::{CursorUse, Write};

/// Requests of one caller, who gets their outcomes in the same order.
pub(crate) struct Calls {
    requests: Vec<(ScopeId, Request)>,
    /// In milliseconds, by the clock of the store.
    now: i64,
    answer: oneshot::Sender<Vec<Outcome>>,
}

pub(crate) enum Job {
    Calls(Calls),
    Write(Box<dyn Write>),
}

struct Call {
    scope_id: ScopeId,
    request: Request,
    now: i64,
}

struct Answer {
    /// How many calls it answers.
    count: usize,
    sender: oneshot::Sender<Vec<Outcome>>,
}

#[derive(Default)]
pub(crate) struct Batch {
    /// In the order in which they came.
    calls: Vec<Call>,
    /// Of the calls, once they are decided.
    outcomes: Vec<Option<Outcome>>,
    /// Together they answer all calls, in their order.
    answers: Vec<Answer>,
    writes: Vec<Box<dyn Write>>,
}

impl Calls {
    pub(crate) fn new(
        requests: Vec<(ScopeId, Request)>,
        now: i64,
    ) -> (Self, oneshot::Receiver<Vec<Outcome>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { requests, now, answer }, receiver)
    }
}

impl Batch {
    pub(crate) fn push(&mut self, job: Job) {
        match job {
            Job::Calls(Calls { requests, now, answer }) => {
                self.answers.push(Answer { count: requests.len(), sender: answer });
                let call = |(scope_id, request)| Call { scope_id, request, now };
                self.calls.extend(requests.into_iter().map(call));
            }
            Job::Write(write) => self.writes.push(write),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len() + self.writes.len()
    }

    /// Called again in another transaction if the commit failed. An empty batch only merges new scopes.
    pub(crate) fn apply(
        &mut self,
        transaction: &Transaction<'_>,
        run: i64,
        new_scopes: &mut NewScopes,
    ) -> Result<Change> {
        let any_write = |of: fn(CursorUse) -> bool| self.writes.iter().any(|write| of(write.cursor_use()));
        let needs_cursors = any_write(|of| of != CursorUse::None);
        if any_write(|of| of == CursorUse::Adds) {
            new_scopes.forget_known();
        }
        let Self { calls, outcomes, writes, .. } = self;
        let merge = match calls.len() {
            _ if needs_cursors => Merge::NeedsCursors,
            0 if writes.is_empty() => Merge::Idle,
            calls => Merge::Calls(calls),
        };
        let change = new_scopes.merge(transaction, merge)?;
        let mut scopes = ScopeTable { transaction, run, new_scopes, change, needs_cursors };
        let mut state = BatchState::of(calls.iter().map(|call| &call.request));
        if state.has_keys() {
            let states = assign::key_states(transaction, &state)?;
            state = state.with_states(states).expect("each key has a state");
        }
        outcomes.clear();
        outcomes.resize_with(calls.len(), || None);
        let sorted = sorted(calls);
        for calls in sorted.chunk_by(|(_, one), (_, other)| one.scope_id.series == other.scope_id.series) {
            let mut series = SeriesRow::default();
            for calls in calls.chunk_by(|(_, one), (_, other)| one.scope_id.scope == other.scope_id.scope) {
                let decided = apply_scope(&mut scopes, calls, &mut series, &mut state)?;
                calls.iter().zip(decided).for_each(|((at, _), outcome)| outcomes[*at] = Some(outcome));
            }
            series.apply(&mut scopes)?;
        }
        writes.iter_mut().try_for_each(|write| write.apply(transaction))?;
        Ok(scopes.change)
    }

    pub(crate) fn answer(&mut self, committed: &StoreResult<()>) {
        // If the batch failed, some calls have no outcome.
        self.outcomes.resize_with(self.calls.len(), || None);
        let outcome = |(call, outcome): (Call, Option<Outcome>)| match committed {
            Ok(()) => outcome.expect("a committed call was decided"),
            Err(error) => call.request.failed(error.clone()),
        };
        let mut outcomes = self.calls.drain(..).zip(self.outcomes.drain(..)).map(outcome);
        for Answer { count, sender } in self.answers.drain(..) {
            // The ranges of a caller that no longer waits become gaps.
            let _ = sender.send(outcomes.by_ref().take(count).collect());
        }
        drop(outcomes);
        self.writes.drain(..).for_each(|write| write.answer(committed.clone()));
    }
}

/// The calls of a scope stand together and keep their order, and so do the scopes of a series. Hashes are compared first:
/// texts that begin alike take long.
fn sorted(calls: &[Call]) -> Vec<(usize, &Call)> {
    let hasher = RandomState::default();
    let key = |call: &Call| (hasher.hash_one(&call.scope_id.series), hasher.hash_one(&call.scope_id.scope));
    let mut sorted: Vec<_> = calls.iter().enumerate().map(|(at, call)| (key(call), at)).collect();
    let by_scope_id = |(key, at): &((u64, u64), usize), (other_key, other): &((u64, u64), usize)| {
        let texts = || calls[*at].scope_id.cmp(&calls[*other].scope_id).then(at.cmp(other));
        key.cmp(other_key).then_with(texts)
    };
    sorted.sort_unstable_by(by_scope_id);
    sorted.into_iter().map(|(_, at)| (at, &calls[at])).collect()
}

/// The outcomes of the calls for one scope.
fn apply_scope(
    scopes: &mut ScopeTable<'_>,
    calls: &[(usize, &Call)],
    series: &mut SeriesRow,
    state: &mut BatchState,
) -> Result<Vec<Outcome>> {
    let scope_id = &calls[0].1.scope_id;
    let requests = || calls.iter().map(|(_, call)| &call.request);
    let stored = scopes.load(scope_id, series, requests())?;
    let Decision { outcomes, change } = decide(&stored.before, scope_id, requests(), state);
    scopes.apply(&stored, series, &change)?;
    if let Some(series_id) = stored.series_id {
        for ((_, call), outcome) in calls.iter().zip(&outcomes) {
            if let Some(document) = call.request.new_document(outcome) {
                assign::write(scopes.transaction, series_id, document, call.now)?;
            }
        }
    }
    Ok(outcomes)
}

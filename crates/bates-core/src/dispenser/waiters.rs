//! Callers that wait for positions of a scope, in order of arrival.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::cell::{Cell, TakeOutcome, WithRefill};
use super::{TakeRequest, TakeResult};
use crate::error::IssueError;
use crate::ledger::GrantError;
use crate::scope::ScopeId;

#[derive(Default)]
pub(super) struct WaitQueue {
    pub(super) waiting: VecDeque<Waiter>,
    pub(super) wanted: u64,
}

pub(super) struct Waiter {
    pub(super) wanted: TakeRequest,
    pub(super) answer: oneshot::Sender<TakeResult>,
}

impl WaitQueue {
    pub(super) fn push_back(&mut self, waiter: Waiter) {
        self.wanted = self.wanted.saturating_add(waiter.wanted.count());
        self.waiting.push_back(waiter);
    }

    pub(super) fn pop_front(&mut self) -> Option<Waiter> {
        let waiter = self.waiting.pop_front()?;
        // If the sum saturated, it is too low now, and more is fetched later.
        self.wanted = self.wanted.saturating_sub(waiter.wanted.count());
        Some(waiter)
    }

    /// The length of the run that the first caller waits for.
    pub(super) fn first_run(&self) -> Option<u64> {
        self.waiting.front().filter(|waiter| waiter.wanted.is_run()).map(|waiter| waiter.wanted.count())
    }
}

impl Waiter {
    pub(super) fn refuse(self, scope_id: &ScopeId, end: u64, error: GrantError) {
        // The caller may no longer wait.
        let _ = self.answer.send(Err(IssueError::from_grant(scope_id, self.wanted.count(), end, error)));
    }
}

impl Cell {
    pub(super) fn wait(&mut self, wanted: TakeRequest) -> WithRefill<TakeOutcome> {
        self.is_used = true;
        let waiting = self.waiters.as_ref().map_or(0, |queue| queue.waiting.len());
        if waiting >= self.series.limits().waiters_max {
            let busy = IssueError::Busy { scope_id: self.scope_id(), waiting };
            return (TakeOutcome::Answered(Err(busy)), None);
        }
        let (answer, receiver) = oneshot::channel();
        self.waiters.get_or_insert_default().push_back(Waiter { wanted, answer });
        (TakeOutcome::Waits(receiver), self.refill_if_low())
    }

    pub(super) fn serve(&mut self) {
        let is_unique = self.is_unique();
        while let Some(queue) = &mut self.waiters {
            let first = queue.waiting.front();
            let taken = first.and_then(|waiter| self.held.take_anywhere(waiter.wanted, is_unique));
            let Some(taken) = taken else { break };
            let waiter = queue.pop_front();
            if let Some(Err(Ok(unseen))) = waiter.map(|waiter| waiter.answer.send(Ok(taken))) {
                // The caller went away before it saw these positions, so they can be handed out.
                for range in unseen.ranges().collect::<Vec<_>>().into_iter().rev() {
                    self.held.hold_again(range);
                }
            }
            self.waiters.take_if(|queue| queue.waiting.is_empty());
        }
    }

    /// When the store has nothing left: each caller in turn gets its positions if enough are held, else an error.
    pub(super) fn serve_remainder(&mut self, held_elsewhere: bool) {
        loop {
            self.serve();
            let Some(queue) = &mut self.waiters else { return };
            if queue.first_run().is_some_and(|count| self.held.longest_run() >= count) {
                // Its run lies after other ranges, which the next refill releases as lost.
                return;
            }
            if let Some(waiter) = queue.pop_front() {
                let left = if waiter.wanted.is_run() { self.held.longest_run() } else { self.held.count() };
                let error = GrantError::Exhausted { left, held_elsewhere };
                waiter.refuse(&self.scope_id(), self.series.end(), error);
            }
            self.waiters.take_if(|queue| queue.waiting.is_empty());
        }
    }
}

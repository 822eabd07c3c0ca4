//! Positions that follow each other, for callers that are told only the last of them. Owns who may take such a run from
//! memory, and what is given up for it. Must never answer with positions of several ranges.

use tokio::sync::oneshot;

use super::{Cell, Fetch, Outcome, Waiter};
use crate::error::IssueError;
use crate::ledger::Tail;
use crate::range::Taken;
use crate::series::Promise;

impl Cell {
    /// Takes positions if enough are held and no caller waits; otherwise waits in line.
    pub(in super::super) fn take(&mut self, count: u64) -> (Outcome, Option<Fetch>) {
        match self.try_take(count) {
            Some((taken, refill)) => (Outcome::Answered(Ok(taken)), refill),
            None => self.wait(count, false),
        }
    }

    /// Takes a run if the range in use holds it and no caller waits; never waits itself.
    #[inline]
    pub(in super::super) fn try_take_run(&mut self, count: u64) -> Option<(Taken, Option<Fetch>)> {
        if self.line.is_some() {
            return None;
        }
        let taken = self.held.take_run(count)?;
        self.is_used = true;
        Some((taken, self.refill_if_low()))
    }

    /// Takes a run if it is held and no caller waits; otherwise waits in line. `None` if a lease is not due and the store
    /// should be asked for the run alone; never with `is_patient`.
    pub(in super::super) fn take_run(
        &mut self,
        count: u64,
        is_patient: bool,
    ) -> Option<(Outcome, Option<Fetch>)> {
        let is_unique = self.series.promise() == Promise::Unique;
        if self.line.is_none() {
            let anywhere = if is_unique { self.held.take_run_anywhere(count) } else { None };
            if let Some(taken) = anywhere.or_else(|| self.held.take_run(count)) {
                self.is_used = true;
                return Some((Outcome::Answered(Ok(taken)), self.refill_if_low()));
            }
            // What is held in short pieces must not grow with every run that does not fit them.
            if is_unique && !is_patient && self.held.count() > self.watermark {
                return None;
            }
        }
        Some(self.wait(count, true))
    }

    fn wait(&mut self, count: u64, is_run: bool) -> (Outcome, Option<Fetch>) {
        self.is_used = true;
        let waiting = self.line.as_ref().map_or(0, |line| line.waiting.len());
        if waiting >= self.series.limits().waiters_max {
            return (Outcome::Answered(Err(IssueError::Busy { place: self.place(), waiting })), None);
        }
        let (answer, receiver) = oneshot::channel();
        self.line.get_or_insert_default().push_back(Waiter { count, is_run, answer });
        (Outcome::Waits(receiver), self.refill_if_low())
    }

    /// In an ordered series, what lies before a run must not be handed out after it. Takes everything out of memory,
    /// for the store to write down as lost what is too short, and to grant the rest again in one piece.
    pub(super) fn give_up_before_run(&mut self, count: u64) -> Option<Tail> {
        if self.series.promise() == Promise::Unique {
            return None;
        }
        let (lost, lease) = self.held.give_up_before_run(count)?;
        Some(Tail { place: self.place(), lease, version: self.version, lost })
    }
}

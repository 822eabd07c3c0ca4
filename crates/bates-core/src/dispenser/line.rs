//! Those who wait for positions of a scope, in the order in which they came.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::cell::Answer;
use super::held::Held;
use crate::error::IssueError;
use crate::range::Taken;

#[derive(Default)]
pub(super) struct Line {
    pub(super) waiting: VecDeque<Waiter>,
    /// How many positions they want together.
    pub(super) wanted: u64,
}

pub(super) struct Waiter {
    pub(super) count: u64,
    /// Whether it needs positions that follow each other.
    pub(super) is_run: bool,
    pub(super) answer: oneshot::Sender<Answer>,
}

impl Line {
    pub(super) fn push_back(&mut self, waiter: Waiter) {
        self.wanted = self.wanted.saturating_add(waiter.count);
        self.waiting.push_back(waiter);
    }

    pub(super) fn pop_front(&mut self) -> Option<Waiter> {
        let waiter = self.waiting.pop_front()?;
        // Once the sum was cut off, it says too little after this: then more is fetched later.
        self.wanted = self.wanted.saturating_sub(waiter.count);
        Some(waiter)
    }

    /// How long the run is that the first one waits for, if it waits for one.
    pub(super) fn waits_for_run(&self) -> Option<u64> {
        self.waiting.front().filter(|waiter| waiter.is_run).map(|waiter| waiter.count)
    }
}

impl Waiter {
    /// Takes what it waits for, if that is held. Where no order is promised, a run may lie behind others.
    pub(super) fn take_from(&self, held: &mut Held, is_unique: bool) -> Option<Taken> {
        match (self.is_run, is_unique) {
            (false, _) => held.take(self.count),
            (true, false) => held.take_run(self.count),
            (true, true) => held.take_run_anywhere(self.count),
        }
    }

    pub(super) fn refuse(self, refusal: IssueError) {
        // Who no longer waits needs no answer.
        let _ = self.answer.send(Err(refusal));
    }
}

//! Those who wait for positions of a scope, in the order in which they came.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::cell::Answer;
use crate::error::IssueError;

#[derive(Default)]
pub(super) struct Line {
    pub(super) waiting: VecDeque<Waiter>,
    /// How many positions they want together.
    pub(super) wanted: u64,
}

pub(super) struct Waiter {
    pub(super) count: u64,
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
}

impl Waiter {
    pub(super) fn refuse(self, refusal: IssueError) {
        // Who no longer waits needs no answer.
        let _ = self.answer.send(Err(refusal));
    }
}

//! One scope in memory: the positions it holds, who waits for more, and when to fetch them.
//!
//! A state machine without a clock, a store or a task: callers tell it what happened and it says what to do.
//! Invariant: a position leaves `held` once, under the lock, and never comes back unless nobody saw it.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::IssueError;
use crate::lease::{Lease, Taken};
use crate::place::Place;
use crate::series::Series;
use crate::store::{Grant, GrantError, Tail};

pub(super) type Answer = Result<Taken, IssueError>;

/// A scope in memory.
pub(super) struct Cell {
    pub(super) place: Place,
    pub(super) series: Series,
    state: Mutex<State>,
}

/// What a caller gets at once.
pub(super) enum Outcome {
    /// An answer; and how many positions to fetch now, if any.
    Answered(Answer, Option<u64>),
    /// An answer later; and how many positions to fetch now, if any.
    Waits(oneshot::Receiver<Answer>, Option<u64>),
    /// The scope was evicted: look it up again.
    Sealed,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself, in whatever mixture")]
struct State {
    /// Granted and not handed out, ascending.
    held: VecDeque<Lease>,
    /// The cursor's version after the last grant.
    version: u64,
    /// In the order in which they came; who comes while somebody waits, waits behind.
    waiting: VecDeque<Waiter>,
    /// How large the lease was that is being used up, and how large the next one will be.
    lease_size: u64,
    next_size: u64,
    /// Invariant: at most one refill is under way.
    is_refilling: bool,
    is_sealed: bool,
    is_exhausted: bool,
    /// Whether it was asked for since the last sweep.
    is_used: bool,
}

struct Waiter {
    count: u64,
    answer: oneshot::Sender<Answer>,
}

impl Cell {
    pub(super) fn new(place: Place, series: Series) -> Self {
        let state = State { next_size: series.limits().lease_min.max(1), ..State::default() };
        Self { place, series, state: Mutex::new(state) }
    }

    /// Takes positions if enough are held and nobody waits; otherwise waits in line.
    pub(super) fn take(&self, count: u64) -> Outcome {
        let mut state = self.state.lock();
        if state.is_sealed {
            return Outcome::Sealed;
        }
        state.is_used = true;
        if state.waiting.is_empty()
            && let Some(taken) = state.pop(count)
        {
            let refill = state.refill(&self.series);
            return Outcome::Answered(Ok(taken), refill);
        }
        if state.is_exhausted {
            return Outcome::Answered(Err(self.exhausted(state.held_count(), count)), None);
        }
        let waiting = state.waiting.len();
        if waiting >= self.series.limits().waiters_max {
            return Outcome::Answered(Err(IssueError::Busy { place: self.place.clone(), waiting }), None);
        }
        let (answer, receiver) = oneshot::channel();
        state.waiting.push_back(Waiter { count, answer });
        let refill = state.refill(&self.series);
        Outcome::Waits(receiver, refill)
    }

    /// Takes positions if enough are held and nobody waits; never waits itself.
    pub(super) fn try_take(&self, count: u64) -> Option<(Taken, Option<u64>)> {
        let mut state = self.state.lock();
        if state.is_sealed || !state.waiting.is_empty() {
            return None;
        }
        let taken = state.pop(count)?;
        state.is_used = true;
        let refill = state.refill(&self.series);
        Some((taken, refill))
    }

    /// A refill ended. Answers how many positions to fetch next, if any.
    pub(super) fn refilled(&self, outcome: Result<Grant, GrantError>) -> Option<u64> {
        let mut state = self.state.lock();
        state.is_refilling = false;
        match outcome {
            Ok(Grant { lease, version }) => {
                state.version = version;
                state.lease_size = lease.count();
                // Only what was granted makes leases grow: an outage must not make a crash skip more.
                state.next_size =
                    state.next_size.saturating_mul(2).min(self.series.limits().lease_max.max(1));
                state.hold(lease);
                state.serve();
            }
            Err(GrantError::Exhausted { .. }) => {
                state.is_exhausted = true;
                // Each in turn gets what is left, if that is enough for it.
                for waiter in std::mem::take(&mut state.waiting) {
                    state.waiting.push_back(waiter);
                    state.serve();
                    let left = state.held_count();
                    state.refuse_all(|waiter| self.exhausted(left, waiter.count));
                }
            }
            Err(error) => {
                // Those whom the rest would do are not turned away for a store that is away.
                state.serve();
                let end = self.series.end();
                state
                    .refuse_all(|waiter| IssueError::of_grant(&self.place, waiter.count, end, error.clone()));
                // A store that failed is asked again when somebody asks us, not in a circle.
                return None;
            }
        }
        state.refill(&self.series)
    }

    /// Seals the cell if nothing is under way, and answers with its unused end. With `only_idle`, a cell that
    /// was used since it was last asked stays.
    ///
    /// Invariant: after sealing nothing leaves the cell, so what is given back was never handed out.
    pub(super) fn seal(&self, only_idle: bool) -> Option<Sealed> {
        let mut state = self.state.lock();
        let is_used = std::mem::take(&mut state.is_used);
        if state.is_sealed || state.is_refilling || !state.waiting.is_empty() || only_idle && is_used {
            return None;
        }
        state.is_sealed = true;
        // Only what ends at the cursor can be given back; ranges before it are gaps.
        let last = state.held.pop_back();
        let lost = state.held.drain(..).map(Lease::count).sum();
        let tail = last.map(|lease| Tail { place: self.place.clone(), lease, version: state.version });
        Some(Sealed { tail, lost })
    }

    /// Seals a cell that holds nothing and has nothing to come: it was never granted anything, or the space is
    /// exhausted. The store is asked again when somebody comes: a tail may have gone back to it meanwhile.
    pub(super) fn seal_if_void(&self) -> bool {
        let mut state = self.state.lock();
        let is_idle = !state.is_refilling && state.waiting.is_empty() && state.held.is_empty();
        let is_void = is_idle && (state.version == 0 || state.is_exhausted);
        state.is_sealed |= is_void;
        is_void
    }

    pub(super) fn held_count(&self) -> u64 {
        self.state.lock().held_count()
    }

    /// The first position that is held; `None` if none is, and the cursor says more.
    pub(super) fn first_held(&self) -> Option<u64> {
        self.state.lock().held.front().map(|lease| lease.from())
    }

    fn exhausted(&self, left: u64, wanted: u64) -> IssueError {
        IssueError::Exhausted { place: self.place.clone(), last: self.series.end() - 1, left, wanted }
    }
}

/// What a sealed cell held.
pub(super) struct Sealed {
    pub(super) tail: Option<Tail>,
    /// Positions that cannot be given back.
    pub(super) lost: u64,
}

impl State {
    fn held_count(&self) -> u64 {
        self.held.iter().map(|lease| lease.count()).sum()
    }

    fn hold(&mut self, lease: Lease) {
        match self.held.back_mut().and_then(|last| Some((last.joined(lease)?, last))) {
            Some((joined, last)) => *last = joined,
            None => self.held.push_back(lease),
        }
    }

    /// Puts back what was taken from the front.
    fn hold_again(&mut self, lease: Lease) {
        match self.held.front_mut().and_then(|first| Some((lease.joined(*first)?, first))) {
            Some((joined, first)) => *first = joined,
            None => self.held.push_front(lease),
        }
    }

    /// Takes `count` positions from the front: all of them, or none.
    fn pop(&mut self, count: u64) -> Option<Taken> {
        if self.held_count() < count {
            return None;
        }
        let first = self.pop_front(count)?;
        let mut taken = Taken { first, rest: Vec::new() };
        while taken.count() < count {
            let missing = count - taken.count();
            taken.rest.push(self.pop_front(missing)?);
        }
        Some(taken)
    }

    fn pop_front(&mut self, count: u64) -> Option<Lease> {
        let (taken, rest) = self.held.pop_front()?.split(count);
        if let Some(rest) = rest {
            self.held.push_front(rest);
        }
        taken
    }

    /// Serves those who wait, in line, as far as what is held goes.
    fn serve(&mut self) {
        while let Some(waiter) = self.waiting.pop_front() {
            let Some(taken) = self.pop(waiter.count) else {
                self.waiting.push_front(waiter);
                return;
            };
            if let Err(Ok(unseen)) = waiter.answer.send(Ok(taken)) {
                // Whoever asked went away before it saw these positions: they are as good as new.
                for lease in unseen.leases().collect::<Vec<_>>().into_iter().rev() {
                    self.hold_again(lease);
                }
            }
        }
    }

    fn refuse_all(&mut self, error: impl Fn(&Waiter) -> IssueError) {
        for waiter in self.waiting.drain(..) {
            let refusal = error(&waiter);
            // Who no longer waits needs no answer.
            let _ = waiter.answer.send(Err(refusal));
        }
    }

    /// Starts a refill if the level is low and none is under way; answers how many positions to ask for.
    fn refill(&mut self, series: &Series) -> Option<u64> {
        let limits = series.limits();
        let held = self.held_count();
        let wanted = self.waiting.iter().fold(0_u64, |sum, waiter| sum.saturating_add(waiter.count));
        let watermark = self.lease_size / 100 * u64::from(limits.watermark_percent)
            + self.lease_size % 100 * u64::from(limits.watermark_percent) / 100;
        let is_low = wanted > held || self.lease_size > 0 && held <= watermark;
        if self.is_refilling || self.is_exhausted || self.is_sealed || !is_low {
            return None;
        }
        self.is_refilling = true;
        Some(self.next_size.min(limits.lease_max.max(1)).max(wanted.saturating_sub(held)))
    }
}

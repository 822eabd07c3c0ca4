//! One scope in memory: the positions it holds, who waits for more, and when to fetch them.
//!
//! A state machine without a clock, a lock, a store or a task: callers tell it what happened and it says what to
//! do. Small and in one piece, because there are as many as scopes in use and each is found far from the last.

mod recall;
mod run;

use tokio::sync::oneshot;

use super::closing::Sealed;
use super::held::Held;
use super::line::{Line, Waiter};
use super::text::Text;
use crate::error::IssueError;
use crate::ledger::{Grant, GrantError, Tail};
use crate::range::Taken;
use crate::scope::{Place, ScopeKey};
use crate::series::{Promise, Series};

/// How much larger than the one before a lease is. Each lease is a durable write, and a scope that is used a lot
/// needs few of them this way. What it costs: a crash skips up to eleven times as many positions as the scope has
/// used since it came into memory, because three quarters of a lease fetch one of eight times its size.
const GROWTH: u64 = 8;

pub(super) type Answer = Result<Taken, IssueError>;

/// A scope in memory.
pub(super) struct Cell {
    held: Held,
    /// When no more than this is left of a lease, the next one is fetched.
    watermark: u64,
    series: Series,
    /// In the order in which they came; who comes while somebody waits, waits behind.
    line: Option<Box<Line>>,
    scope: Text,
    /// The cursor's version after the last grant; 0 before the first.
    version: u64,
    /// How often the lease has grown.
    growths: u8,
    refill: Refill,
    /// Whether anything was held when the refill began.
    held_when_asked: bool,
    is_exhausted: bool,
    /// Whether it was asked for since the last sweep.
    is_used: bool,
}

/// Invariant: at most one refill is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refill {
    None,
    UnderWay,
    /// It is under way, and what it brings must not be used.
    Discarded,
}

/// What a caller gets at once.
pub(super) enum Outcome {
    /// An answer.
    Answered(Answer),
    /// An answer later.
    Waits(oneshot::Receiver<Answer>),
}

/// Positions to fetch now.
pub(super) struct Fetch {
    pub(super) place: Place,
    pub(super) series: Series,
    pub(super) count: u64,
    /// How many of them are waited for.
    pub(super) least: u64,
    /// The first position that is still held.
    pub(super) held_from: Option<u64>,
    /// What goes back to the store first, so that the positions that are fetched go on from there.
    pub(super) give_back: Option<Tail>,
}

impl Cell {
    pub(super) fn new(series: Series, scope: &str) -> Self {
        Self {
            held: Held::default(),
            watermark: 0,
            series,
            line: None,
            scope: Text::new(scope),
            version: 0,
            growths: 0,
            refill: Refill::None,
            held_when_asked: false,
            is_exhausted: false,
            is_used: false,
        }
    }

    #[inline]
    pub(super) fn series(&self) -> &Series {
        &self.series
    }

    #[inline]
    pub(super) fn scope(&self) -> &[u8] {
        self.scope.as_bytes()
    }

    /// Takes positions if enough are held and nobody waits; never waits itself.
    #[inline]
    pub(super) fn try_take(&mut self, count: u64) -> Option<(Taken, Option<Fetch>)> {
        if self.line.is_some() {
            return None;
        }
        let taken = self.held.take(count)?;
        self.is_used = true;
        Some((taken, self.refill_if_low()))
    }

    /// Fetches the first positions of a scope that somebody is about to ask for, if nothing is there yet.
    pub(super) fn warm(&mut self) -> Option<Fetch> {
        if self.version > 0 || self.refill != Refill::None {
            return None;
        }
        Some(self.fetch(self.lease_size(), 0))
    }

    /// A refill ended. Answers what to fetch next, if anything.
    pub(super) fn refilled(&mut self, outcome: Result<Grant, GrantError>) -> Option<Fetch> {
        let ended = std::mem::replace(&mut self.refill, Refill::None);
        match outcome {
            // It was recalled, or the store was taken back since.
            Ok(_) if ended == Refill::Discarded => {}
            Ok(Grant { lease, version, aside }) => {
                self.version = version;
                let free = lease.count() - aside.len() as u64;
                self.watermark = share(free, self.series.limits().watermark_percent);
                // Only what was granted makes leases grow: an outage must not make a crash skip more.
                self.growths = self.growths.saturating_add(1);
                self.held.hold(lease, &aside);
                self.serve();
            }
            Err(GrantError::Exhausted { elsewhere, .. }) => {
                self.serve_the_rest(elsewhere);
                return if self.line.is_some() { self.refill_if_low() } else { self.drained(elsewhere) };
            }
            Err(error) => {
                // Those whom the rest would do are not turned away for a store that is away.
                self.serve();
                let (place, end) = (self.place(), self.series.end());
                for waiter in self.line.take().into_iter().flat_map(|line| line.waiting) {
                    let refusal = IssueError::of_grant(&place, waiter.count, end, error.clone());
                    waiter.refuse(refusal);
                }
                // A store that failed is asked again when somebody asks us, not in a circle.
                return None;
            }
        }
        self.refill_if_low()
    }

    /// Nothing more is granted. Answers with a last question to the store if all that was held is gone since it was
    /// asked: as long as it takes us for a holder, it tells other nodes that the space may not be exhausted.
    fn drained(&mut self, elsewhere: bool) -> Option<Fetch> {
        if !self.held.is_empty() {
            // Asked again when somebody takes of it, not in a circle.
            return None;
        }
        if self.held_when_asked {
            return Some(self.fetch(1, 0));
        }
        self.is_exhausted = !elsewhere;
        None
    }

    /// Ends the cell if nothing is under way, and answers with its unused end. With `only_idle`, a cell that
    /// was used since it was last asked stays.
    ///
    /// Invariant: whoever seals a cell removes it under the lock that it holds, so nothing leaves it afterwards
    /// and what is given back was never handed out.
    pub(super) fn seal(&mut self, only_idle: bool) -> Option<Sealed> {
        let is_used = std::mem::take(&mut self.is_used);
        if self.refill != Refill::None || self.line.is_some() || only_idle && is_used {
            return None;
        }
        // Only what ends at the cursor can be given back; ranges before it are gaps.
        let mut held = self.held.take_all();
        let last = held.pop();
        let lost = held.iter().map(|lease| lease.count()).sum();
        let tail = last.map(|lease| Tail { place: self.place(), lease, version: self.version, lost: held });
        Some(Sealed { tail, lost })
    }

    /// Whether it holds nothing and has nothing to come: it was never granted anything, or the space is
    /// exhausted. Such a cell is removed. The store is asked again when somebody comes: a tail may have gone
    /// back to it meanwhile.
    pub(super) fn is_void(&self) -> bool {
        let is_idle = self.refill == Refill::None && self.line.is_none() && self.held.is_empty();
        is_idle && (self.version == 0 || self.is_exhausted)
    }

    pub(super) fn held_count(&self) -> u64 {
        self.held.count()
    }

    /// The first position that is held; `None` if none is, and the cursor says more.
    pub(super) fn first_held(&self) -> Option<u64> {
        self.held.first()
    }

    pub(super) fn place(&self) -> Place {
        Place { series: self.series.name().clone(), scope: ScopeKey::from_store(self.scope.as_str()) }
    }

    /// Serves those who wait, in line, as far as what is held goes.
    fn serve(&mut self) {
        while let Some(line) = &mut self.line {
            let is_unique = self.series.promise() == Promise::Unique;
            let taken = line.waiting.front().and_then(|waiter| waiter.take_from(&mut self.held, is_unique));
            let Some(taken) = taken else { break };
            let waiter = line.pop_front();
            if let Some(Err(Ok(unseen))) = waiter.map(|waiter| waiter.answer.send(Ok(taken))) {
                // Whoever asked went away before it saw these positions: they are as good as new.
                for lease in unseen.leases().collect::<Vec<_>>().into_iter().rev() {
                    self.held.hold_again(lease);
                }
            }
            if line.waiting.is_empty() {
                self.line = None;
            }
        }
    }

    /// Nothing will be granted any more: each in turn gets what is left, if that is enough for it.
    fn serve_the_rest(&mut self, elsewhere: bool) {
        loop {
            self.serve();
            let Some(line) = &mut self.line else { return };
            if line.waits_for_run().is_some_and(|count| self.held.longest_run() >= count) {
                // Its run lies behind others, which are given up before it is taken.
                return;
            }
            if let Some(waiter) = line.pop_front() {
                let left = if waiter.is_run { self.held.longest_run() } else { self.held.count() };
                let counts = (left, waiter.count);
                let last = self.series.end() - 1;
                waiter.refuse(IssueError::exhausted(self.place(), last, counts, elsewhere));
            }
            self.line.take_if(|line| line.waiting.is_empty());
        }
    }

    /// Starts a refill if the level is low and none is under way.
    #[inline]
    fn refill_if_low(&mut self) -> Option<Fetch> {
        let held = self.held.count();
        if held > self.watermark && self.line.is_none() || self.refill != Refill::None {
            return None;
        }
        self.refill_from(held)
    }

    #[cold]
    fn refill_from(&mut self, held: u64) -> Option<Fetch> {
        let wanted = self.line.as_ref().map_or(0, |line| line.wanted);
        let run = self.line.as_ref().and_then(|line| line.waits_for_run());
        let is_low = run.is_some() || wanted > held || self.version > 0 && held <= self.watermark;
        if self.is_exhausted || !is_low {
            return None;
        }
        let give_back = run.and_then(|count| self.give_up_before_run(count));
        // Of what is held in pieces, a run has nothing.
        let least = if run.is_some() { wanted } else { wanted.saturating_sub(held) };
        Some(Fetch { give_back, ..self.fetch(self.lease_size().max(least), least) })
    }

    fn fetch(&mut self, count: u64, least: u64) -> Fetch {
        let held_from = self.held.first();
        (self.refill, self.held_when_asked) = (Refill::UnderWay, held_from.is_some());
        let (place, series) = (self.place(), self.series.clone());
        Fetch { place, series, count, least, held_from, give_back: None }
    }

    /// How large the next lease is.
    fn lease_size(&self) -> u64 {
        let limits = self.series.limits();
        let grown = GROWTH.saturating_pow(self.growths.into());
        limits.lease_min.max(1).saturating_mul(grown).min(limits.lease_max.max(1))
    }
}

fn share(of: u64, percent: u8) -> u64 {
    of / 100 * u64::from(percent) + of % 100 * u64::from(percent) / 100
}

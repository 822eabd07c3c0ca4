//! One scope in memory: its positions, the callers that wait for more, and when to fetch them.
//! A state machine without clock, lock, store or task. Small, because there is one for each scope in use.

use tokio::sync::oneshot;

use super::ahead::NumbersAhead;
use super::closing::SealedCell;
use super::held::HeldPositions;
use super::inline_key::InlineKey;
use super::waiters::WaitQueue;
use super::{TakeRequest, TakeResult};
use crate::ledger::{Grant, GrantError, ReleaseRequest};
use crate::range::{PositionRange, TakenPositions};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::{Promise, Series};

/// Each range is this many times as large as the one before, so that busy scopes write rarely. The price: with the default
/// limits, a scope that has used 24 of its first 32 positions holds the other 8 and 256 more, which a crash skips.
const GROWTH: u64 = 8;

pub(super) struct Cell {
    pub(super) held: HeldPositions,
    pub(super) series: Series,
    /// In order of arrival: callers never overtake one that waits.
    pub(super) waiters: Option<Box<WaitQueue>>,
    /// Of a busy scope.
    pub(super) ahead: Option<Box<NumbersAhead>>,
    scope: InlineKey,
    /// The cursor's version after the last grant; 0 before the first.
    version: u64,
    /// When no more positions than this are held, the next range is fetched.
    watermark: u32,
    /// How often the range size has grown by `GROWTH`.
    pub(super) growths: u8,
    refill: RefillState,
    is_exhausted: bool,
    /// Whether a caller used it since the last eviction.
    pub(super) is_used: bool,
}

/// Invariant: at most one refill is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefillState {
    None,
    UnderWay {
        /// Whether positions were held when it was requested.
        were_held: bool,
    },
    /// Under way, and its grant must not be used.
    Discarded,
}

pub(super) enum TakeOutcome {
    Answered(TakeResult),
    Waits(oneshot::Receiver<TakeResult>),
}

/// An answer, and the refill to start.
pub(super) type WithRefill<T> = (T, Option<RefillRequest>);

pub(super) struct RefillRequest {
    pub(super) scope_id: ScopeId,
    pub(super) series: Series,
    pub(super) count: u64,
    /// How many of them callers wait for.
    pub(super) count_needed: u64,
    /// The first position still held, which the store records.
    pub(super) held_from: Option<u64>,
    /// Released first, so that the grant begins with these positions.
    pub(super) release: Option<ReleaseRequest>,
}

impl Cell {
    pub(super) fn new(series: Series, scope: &str) -> Self {
        Self {
            held: HeldPositions::default(),
            series,
            waiters: None,
            ahead: None,
            scope: InlineKey::new(scope),
            version: 0,
            watermark: 0,
            growths: 0,
            refill: RefillState::None,
            is_exhausted: false,
            is_used: false,
        }
    }

    #[inline]
    pub(super) fn scope(&self) -> &[u8] {
        self.scope.as_bytes()
    }

    /// Takes positions if enough are held and no caller waits; a run ([`TakeRequest::Run`]) only from the first range.
    #[inline]
    pub(super) fn try_take(&mut self, wanted: TakeRequest) -> Option<WithRefill<TakenPositions>> {
        if self.waiters.is_some() {
            return None;
        }
        let taken = self.held.take(wanted)?;
        self.is_used = true;
        Some((taken, self.refill_if_low()))
    }

    /// Takes held positions or joins the queue. `None`, never with `must_wait`: the store should grant the run directly.
    pub(super) fn take(&mut self, wanted: TakeRequest, must_wait: bool) -> Option<WithRefill<TakeOutcome>> {
        let is_unique = self.is_unique();
        if self.waiters.is_none() {
            if let Some(taken) = self.held.take_anywhere(wanted, is_unique) {
                self.is_used = true;
                return Some((TakeOutcome::Answered(Ok(taken)), self.refill_if_low()));
            }
            // A refill for each run that fits no held range would leave more and more short ranges in memory.
            if wanted.is_run() && is_unique && !must_wait && self.held.count() > self.watermark.into() {
                return None;
            }
        }
        Some(self.wait(wanted))
    }

    /// Fetches the first positions of a scope that callers are about to use.
    pub(super) fn first_refill(&mut self) -> Option<RefillRequest> {
        if self.version > 0 || self.refill != RefillState::None {
            return None;
        }
        Some(self.request_refill(self.range_size(), 0))
    }

    /// Handles the end of a refill. Returns what to fetch next.
    pub(super) fn finish_refill(&mut self, outcome: Result<Grant, GrantError>) -> Option<RefillRequest> {
        let ended = std::mem::replace(&mut self.refill, RefillState::None);
        match outcome {
            // It was recalled, or the store was restored; `refill.rs` gives it up.
            Ok(_) if ended == RefillState::Discarded => {}
            Ok(Grant { range, version, adopted }) => {
                self.version = version;
                let free = range.count() - adopted.len() as u64;
                self.watermark = u32::try_from(self.series.limits().watermark(free)).unwrap_or(u32::MAX);
                // Only grants make ranges grow: an outage must not make a crash skip more.
                self.growths = self.growths.saturating_add(1);
                self.held.hold(range, adopted.iter().map(|position| position.value()));
                self.serve();
            }
            Err(GrantError::Exhausted { held_elsewhere, .. }) => {
                self.serve_remainder(held_elsewhere);
                if self.waiters.is_none() {
                    return self.refill_if_drained(ended, held_elsewhere);
                }
            }
            Err(error) => {
                // Serve waiters that the remainder can satisfy before failing the others.
                self.serve();
                let (scope_id, end) = (self.scope_id(), self.series.end());
                for waiter in self.waiters.take().into_iter().flat_map(|queue| queue.waiting) {
                    waiter.refuse(&scope_id, end, error.clone());
                }
                // The next call tries again, not a loop.
                return None;
            }
        }
        self.refill_if_low()
    }

    /// Requests once more if all held positions were handed out meanwhile, so that the store learns it: while it believes
    /// that this node holds positions, it tells other nodes that the space may not be exhausted.
    fn refill_if_drained(&mut self, ended: RefillState, held_elsewhere: bool) -> Option<RefillRequest> {
        if !self.held.is_empty() {
            // The next call that takes positions tries again, not a loop.
            return None;
        }
        if !matches!(ended, RefillState::UnderWay { were_held: false }) {
            return Some(self.request_refill(1, 0));
        }
        self.is_exhausted = !held_elsewhere;
        None
    }

    /// Ends the cell and returns its unused positions, if no refill is under way and no caller waits. With `only_idle`, a
    /// cell used since the last call stays.
    ///
    /// Invariant: the caller removes a sealed cell under the lock it holds, so no released position is handed out.
    pub(super) fn seal(&mut self, only_idle: bool) -> Option<SealedCell> {
        let is_used = std::mem::take(&mut self.is_used);
        if self.refill != RefillState::None || self.waiters.is_some() || only_idle && is_used {
            return None;
        }
        // Only the range that ends at the cursor can be released; ranges before it are gaps.
        let mut lost = self.held.take_all();
        let last = lost.pop();
        let lost_count = lost.iter().map(|range| range.count()).sum();
        Some(SealedCell { release: last.map(|range| self.release_request(range, lost)), lost_count })
    }

    fn release_request(&self, range: PositionRange, lost: Vec<PositionRange>) -> ReleaseRequest {
        ReleaseRequest { scope_id: self.scope_id(), range, version: self.version, lost }
    }

    /// Whether it was never granted anything, or the space is exhausted. Such a cell is removed, so that the next call
    /// asks the store again: another node may have released positions.
    pub(super) fn is_removable(&self) -> bool {
        let is_idle = self.refill == RefillState::None && self.waiters.is_none() && self.held.is_empty();
        is_idle && (self.version == 0 || self.is_exhausted)
    }

    pub(super) fn scope_id(&self) -> ScopeId {
        self.series.scope_id(&ScopeKey::from_store(self.scope.as_str()))
    }

    pub(super) fn is_unique(&self) -> bool {
        self.series.promise() == Promise::Unique
    }

    /// Gives up all held positions, and those of a refill under way.
    pub(super) fn discard(&mut self) -> Vec<PositionRange> {
        if matches!(self.refill, RefillState::UnderWay { .. }) {
            self.refill = RefillState::Discarded;
        }
        self.held.take_all()
    }

    pub(super) fn is_refill_discarded(&self) -> bool {
        self.refill == RefillState::Discarded
    }

    #[inline]
    pub(super) fn refill_if_low(&mut self) -> Option<RefillRequest> {
        let held = self.held.count();
        if held > self.watermark.into() && self.waiters.is_none() || self.refill != RefillState::None {
            return None;
        }
        self.refill_if_needed(held)
    }

    #[cold]
    fn refill_if_needed(&mut self, held: u64) -> Option<RefillRequest> {
        let wanted = self.waiters.as_ref().map_or(0, |queue| queue.wanted);
        let run = self.waiters.as_ref().and_then(|queue| queue.first_run());
        let is_low = run.is_some() || wanted > held || self.version > 0 && held <= self.watermark.into();
        if self.is_exhausted || !is_low {
            return None;
        }
        let release = run.and_then(|count| self.give_up_before_run(count));
        // A run cannot be put together from held ranges.
        let needed = if run.is_some() { wanted } else { wanted.saturating_sub(held) };
        Some(RefillRequest { release, ..self.request_refill(self.range_size().max(needed), needed) })
    }

    fn request_refill(&mut self, count: u64, count_needed: u64) -> RefillRequest {
        let held_from = self.held.first();
        self.refill = RefillState::UnderWay { were_held: held_from.is_some() };
        let (scope_id, series) = (self.scope_id(), self.series.clone());
        RefillRequest { scope_id, series, count, count_needed, held_from, release: None }
    }

    /// In an ordered series, positions before a run must not be handed out after it. Takes all held positions: the store
    /// records ranges that are too short as lost, and grants the rest again as one range.
    fn give_up_before_run(&mut self, count: u64) -> Option<ReleaseRequest> {
        if self.is_unique() {
            return None;
        }
        let (lost, rest) = self.held.give_up_before_run(count)?;
        Some(self.release_request(rest, lost))
    }

    fn range_size(&self) -> u64 {
        let limits = self.series.limits();
        let grown = GROWTH.saturating_pow(self.growths.into());
        limits.lease_min.max(1).saturating_mul(grown).min(limits.lease_max.max(1))
    }
}

#[cfg(test)]
mod tests;

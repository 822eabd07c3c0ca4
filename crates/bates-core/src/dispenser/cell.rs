//! One scope in memory: the positions it holds, who waits for more, and when to fetch them.
//! A state machine without clock, lock, store or task. Small, because there is one for each scope in use.

use tokio::sync::oneshot;

use super::TakeRequest;
use super::closing::SealedCell;
use super::held::HeldPositions;
use super::inline_key::InlineKey;
use super::waiters::WaitQueue;
use crate::error::IssueError;
use crate::ledger::{Grant, GrantError, ReleaseRequest};
use crate::range::{PositionRange, TakenPositions};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::{Promise, Series};

/// Each range is this many times as large as the one before, so that busy scopes write rarely. The price: a scope that
/// has used 24 of its first 32 positions holds the other 8 and 256 more, which a crash skips.
const GROWTH: u64 = 8;

pub(super) type Answer = Result<TakenPositions, IssueError>;

pub(super) struct Cell {
    pub(super) held: HeldPositions,
    /// When no more than this is left of a lease, the next one is fetched.
    watermark: u64,
    pub(super) series: Series,
    /// In order of arrival: callers never overtake one that waits.
    pub(super) waiters: Option<Box<WaitQueue>>,
    scope: InlineKey,
    /// The cursor's version after the last grant; 0 before the first.
    version: u64,
    growths: u8,
    refill: RefillState,
    held_when_asked: bool,
    is_exhausted: bool,
    pub(super) is_used: bool,
}

/// Invariant: at most one refill is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefillState {
    None,
    UnderWay,
    /// Under way, and its grant must not be used.
    Discarded,
}

pub(super) enum TakeOutcome {
    Answered(Answer),
    Waits(oneshot::Receiver<Answer>),
}

pub(super) struct RefillRequest {
    pub(super) scope_id: ScopeId,
    pub(super) series: Series,
    pub(super) count: u64,
    /// How many of them callers wait for.
    pub(super) count_needed: u64,
    /// The first position still held.
    pub(super) held_from: Option<u64>,
    /// Goes back to the store first, so that the fetched positions continue from it.
    pub(super) give_back: Option<ReleaseRequest>,
}

impl Cell {
    pub(super) fn new(series: Series, scope: &str) -> Self {
        Self {
            held: HeldPositions::default(),
            watermark: 0,
            series,
            waiters: None,
            scope: InlineKey::new(scope),
            version: 0,
            growths: 0,
            refill: RefillState::None,
            held_when_asked: false,
            is_exhausted: false,
            is_used: false,
        }
    }

    #[inline]
    pub(super) fn scope(&self) -> &[u8] {
        self.scope.as_bytes()
    }

    /// Takes positions if enough are held and no caller waits; a run only from the range in use.
    #[inline]
    pub(super) fn try_take(
        &mut self,
        wanted: TakeRequest,
    ) -> Option<(TakenPositions, Option<RefillRequest>)> {
        if self.waiters.is_some() {
            return None;
        }
        let taken = self.held.take(wanted)?;
        self.is_used = true;
        Some((taken, self.refill_if_low()))
    }

    /// Takes positions if held and no caller waits, else waits in line. `None` if no lease is due and the store should
    /// be asked for a run alone; never with `is_patient`.
    pub(super) fn take(
        &mut self,
        wanted: TakeRequest,
        is_patient: bool,
    ) -> Option<(TakeOutcome, Option<RefillRequest>)> {
        let is_unique = self.is_unique();
        if self.waiters.is_none() {
            if let Some(taken) = self.held.take_anywhere(wanted, is_unique) {
                self.is_used = true;
                return Some((TakeOutcome::Answered(Ok(taken)), self.refill_if_low()));
            }
            // Short pieces in memory must not grow with every run that does not fit them.
            if wanted.is_run() && is_unique && !is_patient && self.held.count() > self.watermark {
                return None;
            }
        }
        Some(self.wait(wanted))
    }

    /// Fetches the first positions of a scope that is about to be asked for.
    pub(super) fn first_refill(&mut self) -> Option<RefillRequest> {
        if self.version > 0 || self.refill != RefillState::None {
            return None;
        }
        Some(self.fetch(self.lease_size(), 0))
    }

    /// Handles the end of a refill. Returns what to fetch next.
    pub(super) fn finish_refill(&mut self, outcome: Result<Grant, GrantError>) -> Option<RefillRequest> {
        let ended = std::mem::replace(&mut self.refill, RefillState::None);
        match outcome {
            // It was recalled, or the store was restored.
            Ok(_) if ended == RefillState::Discarded => {}
            Ok(Grant { range: lease, version, adopted }) => {
                self.version = version;
                let free = lease.count() - adopted.len() as u64;
                self.watermark = self.series.limits().watermark(free);
                // Only grants make leases grow: an outage must not make a crash skip more.
                self.growths = self.growths.saturating_add(1);
                self.held.hold(lease, adopted.iter().map(|position| position.value()));
                self.serve();
            }
            Err(GrantError::Exhausted { elsewhere, .. }) => {
                self.serve_remainder(elsewhere);
                return if self.waiters.is_some() {
                    self.refill_if_low()
                } else {
                    self.refill_if_drained(elsewhere)
                };
            }
            Err(error) => {
                // Serve waiters that the remainder can satisfy before failing the others.
                self.serve();
                let (scope_id, end) = (self.scope_id(), self.series.end());
                for waiter in self.waiters.take().into_iter().flat_map(|line| line.waiting) {
                    waiter.refuse(&scope_id, end, error.clone());
                }
                // A store that failed is asked again with the next call, not in a loop.
                return None;
            }
        }
        self.refill_if_low()
    }

    /// Asks the store once more if all that was held is gone: while the store believes that this node holds positions,
    /// it tells other nodes that the space may not be exhausted.
    fn refill_if_drained(&mut self, elsewhere: bool) -> Option<RefillRequest> {
        if !self.held.is_empty() {
            // Asked again when a caller takes from it, not in a loop.
            return None;
        }
        if self.held_when_asked {
            return Some(self.fetch(1, 0));
        }
        self.is_exhausted = !elsewhere;
        None
    }

    /// Ends the cell if nothing is under way, and returns its unused end. With `only_idle`, a cell used since the last
    /// call stays.
    /// Invariant: the caller removes a sealed cell under the lock it holds, so nothing leaves the cell afterwards and
    /// what is given back was never handed out.
    pub(super) fn seal(&mut self, only_idle: bool) -> Option<SealedCell> {
        let is_used = std::mem::take(&mut self.is_used);
        if self.refill != RefillState::None || self.waiters.is_some() || only_idle && is_used {
            return None;
        }
        // Only the range that ends at the cursor can be given back; ranges before it are gaps.
        let mut held = self.held.take_all();
        let last = held.pop();
        let lost_count = held.iter().map(|lease| lease.count()).sum();
        let release = last.map(|lease| ReleaseRequest {
            scope_id: self.scope_id(),
            range: lease,
            version: self.version,
            lost: held,
        });
        Some(SealedCell { release, lost_count })
    }

    /// Whether it was never granted anything, or the space is exhausted. Such a cell is removed, so the store is asked
    /// again with the next call: a tail may have been returned meanwhile.
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

    /// Gives up what is held, and what a refill under way will bring.
    pub(super) fn discard(&mut self) -> Vec<PositionRange> {
        if self.refill == RefillState::UnderWay {
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
        if held > self.watermark && self.waiters.is_none() || self.refill != RefillState::None {
            return None;
        }
        self.refill_from(held)
    }

    #[cold]
    fn refill_from(&mut self, held: u64) -> Option<RefillRequest> {
        let wanted = self.waiters.as_ref().map_or(0, |line| line.wanted);
        let run = self.waiters.as_ref().and_then(|line| line.waits_for_run());
        let is_low = run.is_some() || wanted > held || self.version > 0 && held <= self.watermark;
        if self.is_exhausted || !is_low {
            return None;
        }
        let give_back = run.and_then(|count| self.give_up_before_run(count));
        // A run cannot use what is held in pieces.
        let least = if run.is_some() { wanted } else { wanted.saturating_sub(held) };
        Some(RefillRequest { give_back, ..self.fetch(self.lease_size().max(least), least) })
    }

    fn fetch(&mut self, count: u64, least: u64) -> RefillRequest {
        let held_from = self.held.first();
        (self.refill, self.held_when_asked) = (RefillState::UnderWay, held_from.is_some());
        RefillRequest {
            scope_id: self.scope_id(),
            series: self.series.clone(),
            count,
            count_needed: least,
            held_from,
            give_back: None,
        }
    }

    /// In an ordered series, positions before a run must not be handed out after it. Takes everything from memory: the
    /// store records short pieces as lost and grants the rest again in one piece.
    fn give_up_before_run(&mut self, count: u64) -> Option<ReleaseRequest> {
        if self.is_unique() {
            return None;
        }
        let (lost, lease) = self.held.give_up_before_run(count)?;
        Some(ReleaseRequest { scope_id: self.scope_id(), range: lease, version: self.version, lost })
    }

    fn lease_size(&self) -> u64 {
        let limits = self.series.limits();
        let grown = GROWTH.saturating_pow(self.growths.into());
        limits.lease_min.max(1).saturating_mul(grown).min(limits.lease_max.max(1))
    }
}

#[cfg(test)]
mod tests;

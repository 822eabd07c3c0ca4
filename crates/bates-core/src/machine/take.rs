//! Takes numbers of a scope, skipping rejected positions. Numbers that do not reach the caller are burned.

use super::{Machine, NextError, Numbers};
use crate::dispenser::TakeRequest;
use crate::range::{PositionRange, RangeSet, TakenPositions};
use crate::scope::ScopeId;
use crate::series::OpenScope;
use crate::store::Store;

/// Max numbers taken and rendered before other tasks may run.
const CHUNK_MAX: u64 = 4_096;

/// Gives up after this many rejected positions in a row.
pub(crate) const REJECTED_MAX: u64 = 1_000_000;

/// Numbers, and the ranges they came from if those must be recorded.
pub(crate) struct TakenNumbers {
    pub(crate) numbers: Numbers,
    pub(crate) ranges: Vec<NumberedRange>,
}

/// A range, and the indexes of the numbers that came from it.
pub(crate) struct NumberedRange {
    pub(crate) range: PositionRange,
    pub(crate) numbers: std::ops::Range<usize>,
}

impl TakenNumbers {
    /// Adds the numbers of positions, and returns how many they are.
    fn add(&mut self, open: &OpenScope<'_>, taken: &TakenPositions, keeps_ranges: bool) -> usize {
        let before = self.numbers.len();
        self.numbers.add(&open.scope, taken);
        if keeps_ranges {
            self.add_ranges(taken, before);
        }
        self.numbers.len() - before
    }

    /// Adds the ranges of the numbers from index `begin` on. Adjacent ranges are joined.
    fn add_ranges(&mut self, taken: &TakenPositions, mut begin: usize) {
        for range in taken.ranges() {
            let of_range = self.numbers.positions_from(begin).take_while(|at| at.value() < range.to());
            let end = begin + of_range.count();
            match self.ranges.last_mut() {
                Some(last) if let Some(range) = last.range.joined(range) => {
                    *last = NumberedRange { range, numbers: last.numbers.start..end };
                }
                _ => self.ranges.push(NumberedRange { range, numbers: begin..end }),
            }
            begin = end;
        }
    }
}

impl<S: Store> Machine<S> {
    /// Takes numbers, and keeps their ranges if the series is audited or `keeps_ranges` is set.
    pub(crate) async fn take_numbers<'m>(
        &'m self,
        open: &'m OpenScope<'_>,
        count: u64,
        keeps_ranges: bool,
    ) -> Result<UnclaimedPositions<'m, S, TakenNumbers>, NextError> {
        let taken = TakenNumbers { numbers: Numbers::of(open.entry.spec.value), ranges: Vec::new() };
        let mut unclaimed = UnclaimedPositions::new(self, &open.scope_id, taken);
        let (mut asked, mut rejected) = (count.min(CHUNK_MAX), 0);
        while unclaimed.len() != count {
            // Invariant: no more positions are taken than numbers are missing, so no accepted position is left over.
            match self.take_positions(open, TakeRequest::Any(asked)).await {
                Ok(taken) => {
                    let keeps_ranges = keeps_ranges || self.is_audited(open.entry);
                    let added = unclaimed.get_mut().add(open, &taken, keeps_ranges);
                    rejected = if added > 0 { 0 } else { rejected + taken.count() };
                }
                // A caller that asks for more than is left gets the last numbers.
                Err(error) if error.left() > 0 => {
                    asked = error.left().min(asked);
                    continue;
                }
                // The caller gets the numbers taken so far; they are not burned.
                Err(_) if unclaimed.len() > 0 => break,
                Err(error) => return Err(error.into()),
            }
            if rejected > REJECTED_MAX {
                let all = NextError::AllRejected { positions: rejected };
                return if unclaimed.len() == 0 { Err(all) } else { Ok(unclaimed) };
            }
            asked = (count - unclaimed.len()).min(CHUNK_MAX);
            if asked > 0 {
                // Lets other tasks of this thread run.
                tokio::task::yield_now().await;
            }
        }
        Ok(unclaimed)
    }
}

/// Positions taken and not answered yet. Burned on drop: the caller stopped waiting, or a write before the answer failed.
pub(crate) struct UnclaimedPositions<'m, S: Store, T: HasRanges> {
    machine: &'m Machine<S>,
    scope_id: &'m ScopeId,
    positions: Option<T>,
}

pub(crate) trait HasRanges {
    fn ranges(&self) -> RangeSet;
}

impl HasRanges for TakenNumbers {
    /// Without rejected positions, which are not gaps.
    fn ranges(&self) -> RangeSet {
        RangeSet::of(self.numbers.positions_from(0).map(PositionRange::one))
    }
}

impl HasRanges for TakenPositions {
    fn ranges(&self) -> RangeSet {
        RangeSet::of(self.ranges())
    }
}

impl<'m, S: Store, T: HasRanges> UnclaimedPositions<'m, S, T> {
    pub(crate) fn new(machine: &'m Machine<S>, scope_id: &'m ScopeId, positions: T) -> Self {
        Self { machine, scope_id, positions: Some(positions) }
    }

    pub(crate) fn get(&self) -> &T {
        self.positions.as_ref().expect("not claimed yet")
    }

    fn get_mut(&mut self) -> &mut T {
        self.positions.as_mut().expect("not claimed yet")
    }

    /// From here on the caller owns the positions; nothing may be awaited afterwards.
    pub(crate) fn claim(mut self) -> T {
        self.positions.take().expect("not claimed yet")
    }
}

impl<S: Store> UnclaimedPositions<'_, S, TakenNumbers> {
    fn len(&self) -> u64 {
        self.get().numbers.len() as u64
    }
}

impl<S: Store, T: HasRanges> Drop for UnclaimedPositions<'_, S, T> {
    fn drop(&mut self) {
        if let Some(positions) = self.positions.take() {
            self.machine.dispenser.burn(self.scope_id, positions.ranges().iter());
        }
    }
}

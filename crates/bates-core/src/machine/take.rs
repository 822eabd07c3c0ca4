//! Takes numbers of a scope until there are enough, skipping rejected positions. Numbers that do not reach the caller
//! are burned.

use super::{Machine, NextError, Numbers};
use crate::dispenser::TakeRequest;
use crate::range::{PositionRange, RangeSet, TakenPositions};
use crate::scope::ScopeId;
use crate::series::OpenScope;
use crate::store::Store;

/// Numbers taken and rendered in one go.
const CHUNK: u64 = 4_096;

/// Gives up after this many rejected positions in a row.
const REJECTED_MAX: u64 = 1_000_000;

/// Numbers taken, and the ranges they came from where these must be recorded.
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
    /// Adds the numbers of what was taken, and answers how many they are.
    fn add(&mut self, open: &OpenScope<'_>, taken: &TakenPositions, is_noted: bool) -> usize {
        let before = self.numbers.len();
        self.numbers.add(&open.scope, taken);
        if is_noted {
            self.note(taken, before);
        }
        self.numbers.len() - before
    }

    /// Notes what was taken, of which the numbers from `begin` on came. A range that goes on is one.
    fn note(&mut self, taken: &TakenPositions, mut begin: usize) {
        for range in taken.ranges() {
            let of_range = self.numbers.positions_from(begin).take_while(|position| *position < range.to());
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
    /// Takes numbers, and notes their ranges if the series is audited or `is_noted` is set.
    pub(crate) async fn take_numbers<'m>(
        &'m self,
        open: &'m OpenScope<'_>,
        count: u64,
        is_noted: bool,
    ) -> Result<UnclaimedPositions<'m, S, TakenNumbers>, NextError> {
        let numbers = Numbers::of(open.entry.spec.value);
        let mut unclaimed =
            UnclaimedPositions::new(self, &open.scope_id, TakenNumbers { numbers, ranges: Vec::new() });
        let (mut asked, mut rejected) = (count.min(CHUNK), 0);
        while unclaimed.len() != count {
            // Invariant: no more positions are taken than numbers are missing, so none that is accepted is left over.
            match self.take_positions(open, TakeRequest::Any(asked)).await {
                Ok(taken) => {
                    let is_noted = is_noted || self.is_audited(open.entry);
                    let added = unclaimed.get_mut().add(open, &taken, is_noted);
                    rejected = if added > 0 { 0 } else { rejected + taken.count() };
                }
                // A caller that asks for more than is left gets the last few.
                Err(error) if error.left() > 0 => {
                    asked = error.left().min(asked);
                    continue;
                }
                // Numbers already taken are given, not burned.
                Err(_) if unclaimed.len() > 0 => break,
                Err(error) => return Err(error.into()),
            }
            if rejected > REJECTED_MAX {
                let all = NextError::AllRejected { positions: rejected };
                return if unclaimed.len() == 0 { Err(all) } else { Ok(unclaimed) };
            }
            asked = (count - unclaimed.len()).min(CHUNK);
            if asked > 0 {
                // Lets other tasks of this thread run.
                tokio::task::yield_now().await;
            }
        }
        Ok(unclaimed)
    }
}

/// Positions taken that the caller does not have yet. Burned on drop: the caller stopped waiting, or a write that
/// must come first failed.
pub(crate) struct UnclaimedPositions<'m, S: Store, T: HasRanges> {
    machine: &'m Machine<S>,
    scope_id: &'m ScopeId,
    positions: Option<T>,
}

pub(crate) trait HasRanges {
    fn ranges(&self) -> RangeSet;
}

impl HasRanges for TakenNumbers {
    /// Without rejected positions: they are no gaps.
    fn ranges(&self) -> RangeSet {
        RangeSet::of(self.numbers.positions_from(0).filter_map(|at| PositionRange::new(at, at + 1)))
    }
}

impl HasRanges for TakenPositions {
    fn ranges(&self) -> RangeSet {
        RangeSet::of(self.ranges())
    }
}

impl<'m, S: Store, T: HasRanges> UnclaimedPositions<'m, S, T> {
    pub(crate) fn new(machine: &'m Machine<S>, scope_id: &'m ScopeId, what: T) -> Self {
        Self { machine, scope_id, positions: Some(what) }
    }

    pub(crate) fn get(&self) -> &T {
        self.positions.as_ref().expect("it is there until it is claimed")
    }

    fn get_mut(&mut self) -> &mut T {
        self.positions.as_mut().expect("it is there until it is claimed")
    }

    /// The caller owns it from here on; nothing may be awaited afterwards.
    pub(crate) fn claim(mut self) -> T {
        self.positions.take().expect("it is there until it is claimed")
    }
}

impl<S: Store> UnclaimedPositions<'_, S, TakenNumbers> {
    fn len(&self) -> u64 {
        self.get().numbers.len() as u64
    }
}

impl<S: Store, T: HasRanges> Drop for UnclaimedPositions<'_, S, T> {
    fn drop(&mut self) {
        if let Some(what) = self.positions.take() {
            self.machine.dispenser.burn(self.scope_id, what.ranges().iter());
        }
    }
}

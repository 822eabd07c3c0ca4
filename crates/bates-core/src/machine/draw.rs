//! Takes numbers of a scope until there are enough, skipping rejected positions. Numbers that do not reach the caller
//! are burned.

use super::{Machine, NextError, Numbers};
use crate::dispenser::Wanted;
use crate::range::{Lease, Ranges, Taken};
use crate::scope::Place;
use crate::series::OpenScope;
use crate::store::Store;

/// Numbers taken and rendered in one go.
const CHUNK: u64 = 4_096;

/// Gives up after this many rejected positions in a row.
const REJECTED_MAX: u64 = 1_000_000;

/// Numbers taken, and the ranges they came from where these must be recorded.
pub(crate) struct Drawn {
    pub(crate) numbers: Numbers,
    pub(crate) pieces: Vec<Piece>,
}

/// A range, and the indexes of the numbers that came from it.
pub(crate) struct Piece {
    pub(crate) range: Lease,
    pub(crate) numbers: std::ops::Range<usize>,
}

impl Drawn {
    /// Adds the numbers of what was taken, and answers how many they are.
    fn add(&mut self, open: &OpenScope<'_>, taken: &Taken, is_noted: bool) -> usize {
        let before = self.numbers.len();
        self.numbers.add(&open.scope, taken);
        if is_noted {
            self.note(taken, before);
        }
        self.numbers.len() - before
    }

    /// Notes what was taken, of which the numbers from `begin` on came. A range that goes on is one.
    fn note(&mut self, taken: &Taken, mut begin: usize) {
        for range in taken.leases() {
            let of_range = self.numbers.positions_from(begin).take_while(|position| *position < range.to());
            let end = begin + of_range.count();
            match self.pieces.last_mut() {
                Some(last) if let Some(range) = last.range.joined(range) => {
                    *last = Piece { range, numbers: last.numbers.start..end };
                }
                _ => self.pieces.push(Piece { range, numbers: begin..end }),
            }
            begin = end;
        }
    }
}

impl<S: Store> Machine<S> {
    /// Takes numbers, and notes their ranges if the series is audited or `is_noted` is set.
    pub(crate) async fn draw<'m>(
        &'m self,
        open: &'m OpenScope<'_>,
        count: u64,
        is_noted: bool,
    ) -> Result<Unclaimed<'m, S, Drawn>, NextError> {
        let numbers = Numbers::of(open.entry.spec.value);
        let mut unclaimed = Unclaimed::new(self, &open.place, Drawn { numbers, pieces: Vec::new() });
        let (mut asked, mut rejected) = (count.min(CHUNK), 0);
        while unclaimed.len() != count {
            // Invariant: no more positions are taken than numbers are missing, so none that is accepted is left over.
            match self.positions(open, Wanted::Any(asked)).await {
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
pub(crate) struct Unclaimed<'m, S: Store, T: Positions> {
    machine: &'m Machine<S>,
    place: &'m Place,
    what: Option<T>,
}

pub(crate) trait Positions {
    fn ranges(&self) -> Ranges;
}

impl Positions for Drawn {
    /// Without rejected positions: they are no gaps.
    fn ranges(&self) -> Ranges {
        Ranges::of(self.numbers.positions_from(0).filter_map(|at| Lease::new(at, at + 1)))
    }
}

impl Positions for Taken {
    fn ranges(&self) -> Ranges {
        Ranges::of(self.leases())
    }
}

impl<'m, S: Store, T: Positions> Unclaimed<'m, S, T> {
    pub(crate) fn new(machine: &'m Machine<S>, place: &'m Place, what: T) -> Self {
        Self { machine, place, what: Some(what) }
    }

    pub(crate) fn get(&self) -> &T {
        self.what.as_ref().expect("it is there until it is claimed")
    }

    fn get_mut(&mut self) -> &mut T {
        self.what.as_mut().expect("it is there until it is claimed")
    }

    /// The caller owns it from here on; nothing may be awaited afterwards.
    pub(crate) fn claim(mut self) -> T {
        self.what.take().expect("it is there until it is claimed")
    }
}

impl<S: Store> Unclaimed<'_, S, Drawn> {
    fn len(&self) -> u64 {
        self.get().numbers.len() as u64
    }
}

impl<S: Store, T: Positions> Drop for Unclaimed<'_, S, T> {
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            self.machine.dispenser.burn(self.place, what.ranges().iter());
        }
    }
}

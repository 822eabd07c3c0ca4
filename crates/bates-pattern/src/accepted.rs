//! A walk through the positions that a pattern's rules accept, 1 in 17 for a 12-digit OpenG2P series: it permutes several
//! candidates at once, or skips whole stretches when counting.

use crate::position::Position;
use crate::scope::Scope;
use crate::shuffle::{BATCH, Shuffle, Tweak};

/// Ranges up to this length are permuted in a batch of this size, so that few numbers do not take as long as many.
const FEW: usize = 8;

/// The accepted positions of a range, in order. Made by [`Scope::accepted`].
#[derive(Debug)]
pub struct Accepted<'s> {
    scope: &'s Scope,
    next: u64,
    end: u64,
    /// If shuffled, the values of the positions before `next`; those from `taken` on are unread.
    values: [u128; BATCH],
    taken: usize,
}

impl<'s> Accepted<'s> {
    pub(crate) fn new(scope: &'s Scope, first: Position, last: Position) -> Self {
        let end = last.min(scope.pattern().last()).value() + 1;
        Self { scope, next: first.value().min(end), end, values: [0; BATCH], taken: BATCH }
    }

    /// Appends the number at the next accepted position, and answers the position. `None`, with the buffer unchanged, at
    /// the end of the range. A shuffled order has to try each position, so a long range can take long.
    pub fn next_into(&mut self, out: &mut Vec<u8>) -> Option<Position> {
        match (self.scope.pattern().shuffle(), self.scope.tweak) {
            (Some(shuffle), Some(tweak)) => self.next_shuffled(shuffle, tweak, out),
            _ => self.next_counted(out),
        }
    }

    /// Skips all values with the same refused beginning.
    fn next_counted(&mut self, out: &mut Vec<u8>) -> Option<Position> {
        while self.next < self.end {
            let value = u128::from(self.next);
            if self.scope.write_accepted(value, out) {
                self.next += 1;
                return Position::new(self.next - 1);
            }
            let after = u64::try_from(self.scope.after_refused(value, out)).unwrap_or(u64::MAX);
            self.next = after.min(self.end);
        }
        None
    }

    fn next_shuffled(&mut self, shuffle: &Shuffle, tweak: Tweak, out: &mut Vec<u8>) -> Option<Position> {
        loop {
            if self.taken == BATCH {
                self.permute(shuffle, tweak)?;
            }
            let value = self.values[self.taken];
            self.taken += 1;
            if self.scope.write_accepted(value, out) {
                return Position::new(self.next - (BATCH - self.taken) as u64 - 1);
            }
        }
    }

    /// Fills the values from the back, so that a short last batch ends like any other.
    fn permute(&mut self, shuffle: &Shuffle, tweak: Tweak) -> Option<()> {
        let count = usize::try_from(self.end - self.next).unwrap_or(usize::MAX).min(BATCH);
        if count == 0 {
            return None;
        }
        let first = BATCH - count;
        match count {
            1 => self.values[first] = shuffle.permute(tweak, u128::from(self.next)),
            2..=FEW => self.permute_last::<FEW>(shuffle, tweak, count),
            _ => self.permute_last::<BATCH>(shuffle, tweak, count),
        }
        self.next += count as u64;
        self.taken = first;
        Some(())
    }

    /// Permutes N values; only the last `count` are read.
    fn permute_last<const N: usize>(&mut self, shuffle: &Shuffle, tweak: Tweak, count: usize) {
        let mut values: [u128; N] =
            std::array::from_fn(|lane| u128::from(self.next) + (lane + count).saturating_sub(N) as u128);
        shuffle.permute_batch(tweak, &mut values);
        self.values[BATCH - N..].copy_from_slice(&values);
    }
}

//! A walk through the positions that a pattern's rules accept. Of the candidates of a 12-digit OpenG2P series 1 in 17
//! is accepted, so it permutes several candidates at once. Counting skips whole stretches instead.

use crate::position::Position;
use crate::scope::Scope;
use crate::shuffle::{BATCH, Shuffle, Tweak};

/// A range that is no longer is permuted in a batch of this size: whoever wants few does not wait for many.
const FEW: usize = 8;

/// The accepted positions of a range, in order. Made by [`Scope::accepted`].
#[derive(Debug)]
pub struct Accepted<'s> {
    scope: &'s Scope,
    /// The next position to look at, and the first one past the range.
    next: u64,
    end: u64,
    /// If shuffled, the values of the positions before `next`; those from `taken` on are still to be seen.
    values: [u128; BATCH],
    taken: usize,
}

impl<'s> Accepted<'s> {
    pub(crate) fn new(scope: &'s Scope, first: Position, last: Position) -> Self {
        let end = last.min(scope.pattern().last()).value() + 1;
        Self { scope, next: first.value().min(end), end, values: [0; BATCH], taken: BATCH }
    }

    /// Appends the number at the next accepted position to the caller's buffer, and answers the position.
    ///
    /// `None` when the range has no more; the buffer then stays as it was. A shuffled order has to try each
    /// position, so a range should be no longer than its caller is ready to wait for.
    pub fn next_into(&mut self, out: &mut Vec<u8>) -> Option<Position> {
        match (self.scope.pattern().shuffle(), self.scope.tweak) {
            (Some(shuffle), Some(tweak)) => self.next_shuffled(shuffle, tweak, out),
            _ => self.next_counted(out),
        }
    }

    /// A beginning that is refused takes everything that begins with it along.
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

    /// Permutes N values of which the last `count` are wanted. Those before them repeat the first one and are not read.
    fn permute_last<const N: usize>(&mut self, shuffle: &Shuffle, tweak: Tweak, count: usize) {
        let mut values: [u128; N] =
            std::array::from_fn(|lane| u128::from(self.next) + (lane + count).saturating_sub(N) as u128);
        shuffle.permute_batch(tweak, &mut values);
        self.values[BATCH - N..].copy_from_slice(&values);
    }
}

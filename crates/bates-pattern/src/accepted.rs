//! Finds the positions that the rules of a pattern accept: 1 in 17 for a 12-digit OpenG2P series. A shuffled order
//! permutes several candidates at once; a counting order skips all values with a rejected prefix.

use crate::position::Position;
use crate::scope::Scope;
use crate::shuffle::{SHUFFLE_BATCH_LEN, Shuffle, Tweak};

/// The accepted positions of a range, in order. Returned by [`Scope::accepted`].
#[derive(Debug)]
pub struct AcceptedPositions<'s> {
    scope: &'s Scope,
    next: u64,
    end: u64,
    /// If shuffled, the values of the last positions before `next`.
    values: [u128; SHUFFLE_BATCH_LEN],
    /// The index of the first value that was not returned yet.
    unread: usize,
}

impl<'s> AcceptedPositions<'s> {
    pub(crate) fn new(scope: &'s Scope, first: Position, last: Position) -> Self {
        let end = last.min(scope.pattern().last()).value() + 1;
        let (next, values) = (first.value().min(end), [0; SHUFFLE_BATCH_LEN]);
        Self { scope, next, end, values, unread: SHUFFLE_BATCH_LEN }
    }

    /// Appends the number at the next accepted position, and returns the position. At the end of the range, returns
    /// `None` and leaves the buffer unchanged. A shuffled order tries every position, so a long range takes long.
    pub fn next_into(&mut self, out: &mut Vec<u8>) -> Option<Position> {
        match (self.scope.pattern().shuffle(), self.scope.tweak) {
            (Some(shuffle), Some(tweak)) => self.next_shuffled(shuffle, tweak, out),
            _ => self.next_counting(out),
        }
    }

    /// Writes the `{seq}` of the next positions into slots of its width, one for each. Only for a scope whose numbers are
    /// [alike](Scope::are_numbers_alike). Panics at the end of the range.
    pub fn fill_seqs<'o>(&mut self, slots: impl IntoIterator<Item = &'o mut [u8]>) {
        let alphabet = &self.scope.pattern().compiled_template().seq.alphabet;
        let shuffled = self.scope.pattern().shuffle().zip(self.scope.tweak);
        for slot in slots {
            let value = match shuffled {
                Some((shuffle, tweak)) => self.next_value(shuffle, tweak),
                None if self.next < self.end => {
                    self.next += 1;
                    Some(u128::from(self.next - 1))
                }
                None => None,
            };
            alphabet.fill(slot, value.expect("a slot for each position"));
        }
    }

    /// Skips all values with the same rejected prefix.
    fn next_counting(&mut self, out: &mut Vec<u8>) -> Option<Position> {
        while self.next < self.end {
            let value = u128::from(self.next);
            if self.scope.write_accepted(value, out) {
                self.next += 1;
                return Position::new(self.next - 1);
            }
            let after = u64::try_from(self.scope.value_after_rejected(value, out)).unwrap_or(u64::MAX);
            self.next = after.min(self.end);
        }
        None
    }

    fn next_shuffled(&mut self, shuffle: &Shuffle, tweak: Tweak, out: &mut Vec<u8>) -> Option<Position> {
        loop {
            let value = self.next_value(shuffle, tweak)?;
            if self.scope.write_accepted(value, out) {
                return Position::new(self.next - (SHUFFLE_BATCH_LEN - self.unread) as u64 - 1);
            }
        }
    }

    #[inline]
    fn next_value(&mut self, shuffle: &Shuffle, tweak: Tweak) -> Option<u128> {
        if self.unread == SHUFFLE_BATCH_LEN {
            self.refill(shuffle, tweak)?;
        }
        self.unread += 1;
        Some(self.values[self.unread - 1])
    }

    /// Fills `values` from the back, so that the end of a short batch is the end of the array.
    fn refill(&mut self, shuffle: &Shuffle, tweak: Tweak) -> Option<()> {
        let count = usize::try_from(self.end - self.next).unwrap_or(usize::MAX).min(SHUFFLE_BATCH_LEN);
        if count == 0 {
            return None;
        }
        self.unread = SHUFFLE_BATCH_LEN - count;
        let batch = &mut self.values[self.unread..];
        for (index, at) in batch.iter_mut().zip(self.next..) {
            *index = u128::from(at);
        }
        match batch {
            [index] => *index = shuffle.permute(tweak, *index),
            batch => shuffle.permute_batch(tweak, batch),
        }
        self.next += count as u64;
        Some(())
    }
}

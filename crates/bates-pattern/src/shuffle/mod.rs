//! `order: shuffled`: a keyed permutation of `0..size`. See `docs/adr/0002-shuffled-order.md`.
//!
//! Invariant: the permutation never changes, or old identifiers would be issued again.

mod ff1;
mod key;

use ff1::Ff1;

pub use ff1::Tweak;
pub use key::{Key, KeyError};

/// The largest space that can be shuffled: 31 digits, or 32 with a check digit.
pub const SHUFFLE_SIZE_MAX: u128 = 10_u128.pow(31);

/// The largest batch for [`Shuffle::permute_batch`], and the fastest for each value: processors encrypt several AES blocks
/// at once.
pub const SHUFFLE_BATCH_LEN: usize = ff1::LANES_MAX;

/// A keyed permutation of `0..size`.
#[derive(Clone, Debug)]
pub struct Shuffle {
    ff1: Ff1,
    size: u128,
}

/// A size that is too small or too large to shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a space of {0} cannot be shuffled: the size must be 2 to 10^31")]
pub struct ShuffleSizeError(pub u128);

impl Shuffle {
    /// A permutation of `0..size`, for a size of 2 to 10^31: FF1 over the bits of a value, repeated until the result is
    /// below the size.
    pub fn new(key: &Key, size: u128) -> Result<Self, ShuffleSizeError> {
        if !(2..=SHUFFLE_SIZE_MAX).contains(&size) {
            return Err(ShuffleSizeError(size));
        }
        // FF1 splits its input in two, so it needs at least two bits.
        let bits = (u128::BITS - (size - 1).leading_zeros()).max(2);
        Ok(Self { ff1: Ff1::new(key, 2, bits), size })
    }

    /// A permutation of the texts of `width` characters over `radix`: FF1 over the characters. A text of one character
    /// is permuted as in [`Shuffle::new`].
    pub fn of_field(key: &Key, radix: u8, width: u32) -> Result<Self, ShuffleSizeError> {
        let size = u128::from(radix).checked_pow(width).unwrap_or(u128::MAX);
        if width < 2 || radix < 2 || size > SHUFFLE_SIZE_MAX {
            return Self::new(key, size);
        }
        Ok(Self { ff1: Ff1::new(key, u32::from(radix), width), size })
    }

    /// The number of values.
    pub fn size(&self) -> u128 {
        self.size
    }

    /// Prepares a tweak. Each tweak gives another permutation under the same key.
    pub fn tweak(&self, tweak: &[u8]) -> Tweak {
        self.ff1.tweak(tweak)
    }

    /// The value at `index`. Panics unless `index` is below the size, because the loop might not end.
    pub fn permute(&self, tweak: Tweak, index: u128) -> u128 {
        assert!(index < self.size, "an index lies inside the space");
        let mut value = self.ff1.encrypt(tweak, index);
        while value >= self.size {
            value = self.ff1.encrypt(tweak, value);
        }
        value
    }

    /// The index of `value`: the inverse of [`Shuffle::permute`]. Panics unless `value` is below the size.
    pub fn invert(&self, tweak: Tweak, value: u128) -> u128 {
        assert!(value < self.size, "a value lies inside the space");
        let mut index = self.ff1.decrypt(tweak, value);
        while index >= self.size {
            index = self.ff1.decrypt(tweak, index);
        }
        index
    }

    /// Replaces each index by its value. Panics if there are more than [`SHUFFLE_BATCH_LEN`], or unless every index is below
    /// the size.
    pub fn permute_batch(&self, tweak: Tweak, indices: &mut [u128]) {
        assert!(indices.iter().all(|index| *index < self.size), "an index lies inside the space");
        self.ff1.encrypt_batch(tweak, indices);
        for value in indices {
            while *value >= self.size {
                *value = self.ff1.encrypt(tweak, *value);
            }
        }
    }
}

#[cfg(test)]
mod tests;

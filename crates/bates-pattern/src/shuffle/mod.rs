//! `order: shuffled`: a keyed permutation of `0..size`, see `docs/adr/0002-shuffled-order.md`. It must never change, or
//! old identifiers would be issued again.

mod ff1;
mod key;

use ff1::Ff1;

pub use ff1::Tweak;
pub use key::{Key, KeyError};

/// The largest space that can be shuffled: 31 digits, an identifier of 32 with its check digit.
pub const SIZE_MAX: u128 = 10_u128.pow(31);

/// The best batch for [`Shuffle::permute_batch`]: AES units work on several blocks at a time.
pub const BATCH: usize = 32;

/// A keyed permutation of `0..size`.
#[derive(Clone, Debug)]
pub struct Shuffle {
    ff1: Ff1,
    size: u128,
}

/// A size that cannot be shuffled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a space of {0} cannot be shuffled: the size must be 2 to 10^31")]
pub struct SizeError(pub u128);

impl Shuffle {
    /// A permutation of `0..size`, from 2 to 10^31: FF1 over the bits of a value, repeated until it is below the size.
    pub fn new(key: &Key, size: u128) -> Result<Self, SizeError> {
        if !(2..=SIZE_MAX).contains(&size) {
            return Err(SizeError(size));
        }
        // FF1 splits its input in two, so a domain has at least two bits.
        let bits = (u128::BITS - (size - 1).leading_zeros()).max(2);
        Ok(Self { ff1: Ff1::new(key, 2, bits), size })
    }

    /// A permutation of the texts of `width` characters over `radix`: FF1 over the characters, or over the bits of one.
    pub fn of_field(key: &Key, radix: u8, width: u32) -> Result<Self, SizeError> {
        let size = u128::from(radix).checked_pow(width).unwrap_or(u128::MAX);
        if width < 2 || radix < 2 || size > SIZE_MAX {
            return Self::new(key, size);
        }
        Ok(Self { ff1: Ff1::new(key, u32::from(radix), width), size })
    }

    /// How many values there are.
    pub fn size(&self) -> u128 {
        self.size
    }

    /// Prepares a tweak: each gives a permutation of its own under the same key.
    pub fn tweak(&self, tweak: &[u8]) -> Tweak {
        self.ff1.tweak(tweak)
    }

    /// The value at `index`. Panics unless it is below the size; otherwise the walk might not end.
    pub fn permute(&self, tweak: Tweak, index: u128) -> u128 {
        assert!(index < self.size, "an index lies inside the space");
        let mut value = self.ff1.encrypt(tweak, index);
        while value >= self.size {
            value = self.ff1.encrypt(tweak, value);
        }
        value
    }

    /// The index of `value`, which must be below the size: the inverse of [`Shuffle::permute`].
    pub fn invert(&self, tweak: Tweak, value: u128) -> u128 {
        assert!(value < self.size, "a value lies inside the space");
        let mut index = self.ff1.decrypt(tweak, value);
        while index >= self.size {
            index = self.ff1.decrypt(tweak, index);
        }
        index
    }

    /// The values at several indices, each below the size, in their order.
    pub fn permute_batch<const N: usize>(&self, tweak: Tweak, indices: &mut [u128; N]) {
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

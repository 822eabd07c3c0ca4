//! FF1 of NIST SP 800-38G on integers instead of digit strings, for domains whose halves fit 64 bits: FF1 only adds
//! halves modulo `radix^u` or `radix^v`. The CBC-MAC of the first block and the tweak is computed once per tweak, so
//! each of the ten rounds encrypts one AES block.
#![expect(clippy::cast_possible_truncation, reason = "a remainder by a 64-bit modulus fits 64 bits")]

use std::fmt;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit, consts::U16};
use aes::{Aes128Enc, Aes192Enc, Aes256Enc};

use super::key::Key;

const ROUNDS: u8 = 10;

/// The most values of a batch: AES units with 512 bits encrypt as many blocks at once.
pub(super) const LANES_MAX: usize = 64;

type Block = Array<u8, U16>;

/// A prepared tweak: the CBC-MAC state with which each round starts. It depends on the key, so `Debug` hides it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tweak(u128);

impl fmt::Debug for Tweak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tweak")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Ff1 {
    cipher: Cipher,
    radix: u32,
    numerals: u32,
    /// `radix^u` for the left half, `radix^v` for the right one; `v` is `u` or one more.
    left: u64,
    right: u64,
    /// `b` of the standard, in bits: the length of a half in the block of a round.
    half_bits: u32,
    /// 128 minus `d` of the standard in bits: the end of a block that is not part of `y`.
    spare_bits: u32,
}

impl Ff1 {
    /// Needs `numerals >= 2` and `radix^numerals <= 10^31`.
    pub(super) fn new(key: &Key, radix: u32, numerals: u32) -> Self {
        let left_numerals = numerals / 2;
        let power = |n: u32| u64::from(radix).checked_pow(n).expect("half of 10^31 times 94 fits 64 bits");
        let (left, right) = (power(left_numerals), power(numerals - left_numerals));
        // ceil(v * log2(radix)) is the bit length of the largest right half.
        let half_bytes = (u64::BITS - (right - 1).leading_zeros()).div_ceil(8);
        let y_bytes = 4 * half_bytes.div_ceil(4) + 4;
        Self {
            cipher: Cipher::new(key),
            radix,
            numerals,
            left,
            right,
            half_bits: 8 * half_bytes,
            spare_bits: 128 - 8 * y_bytes,
        }
    }

    /// Absorbs the fixed block P, the tweak and its padding: all input that is the same in every round.
    pub(super) fn tweak(&self, tweak: &[u8]) -> Tweak {
        let length = u32::try_from(tweak.len()).expect("a tweak is shorter than 4 GiB");
        let round_bytes = (self.half_bits / 8 + 1) as usize;
        let mut input = self.fixed_block(length).to_vec();
        input.extend_from_slice(tweak);
        let padding = (16 - (tweak.len() + round_bytes) % 16) % 16;
        input.resize(input.len() + padding + round_bytes, 0);
        // Each round adds its number and half to the last block, and encrypts it.
        let blocks = input.as_chunks::<16>().0;
        let (last, absorbed) = blocks.split_last().expect("P alone fills a block");
        let absorb = |state, block: &[u8; 16]| self.cipher.encrypt(state ^ u128::from_be_bytes(*block));
        Tweak(absorbed.iter().fold(0, absorb) ^ u128::from_be_bytes(*last))
    }

    /// P of the standard: version 1, method 2, addition 1, radix, ten rounds, u mod 256, n, t.
    fn fixed_block(&self, tweak_length: u32) -> [u8; 16] {
        let mut block = [1, 2, 1, 0, 0, 0, ROUNDS, (self.numerals / 2 % 256) as u8, 0, 0, 0, 0, 0, 0, 0, 0];
        block[3..6].copy_from_slice(&self.radix.to_be_bytes()[1..]);
        block[8..12].copy_from_slice(&self.numerals.to_be_bytes());
        block[12..].copy_from_slice(&tweak_length.to_be_bytes());
        block
    }

    pub(super) fn encrypt(&self, tweak: Tweak, value: u128) -> u128 {
        let (mut a, mut b) = self.split(value);
        for round in 0..ROUNDS {
            let y = self.cipher.encrypt(self.round_block(tweak, round, b));
            let c = self.add(a, y, self.modulus(round));
            (a, b) = (b, c);
        }
        self.join(a, b)
    }

    pub(super) fn decrypt(&self, tweak: Tweak, value: u128) -> u128 {
        let (mut a, mut b) = self.split(value);
        for round in (0..ROUNDS).rev() {
            let y = self.cipher.encrypt(self.round_block(tweak, round, a));
            let c = self.subtract(b, y, self.modulus(round));
            (b, a) = (a, c);
        }
        self.join(a, b)
    }

    /// As [`Ff1::encrypt`] on each lane, at most [`LANES_MAX`]; the blocks of a round go through the cipher together.
    pub(super) fn encrypt_batch(&self, tweak: Tweak, values: &mut [u128]) {
        let (mut a, mut b) = ([0; LANES_MAX], [0; LANES_MAX]);
        let (mut a, mut b) = (&mut a[..values.len()], &mut b[..values.len()]);
        for ((a, b), value) in a.iter_mut().zip(&mut *b).zip(&*values) {
            (*a, *b) = self.split(*value);
        }
        // Blocks are written in place: `map` would copy them, which takes as long as the cipher.
        let mut blocks = [Block::default(); LANES_MAX];
        let blocks = &mut blocks[..values.len()];
        for round in 0..ROUNDS {
            let state = self.round_block(tweak, round, 0);
            let (high, low) = (((state >> 64) as u64).to_be_bytes(), state as u64);
            for (block, b) in blocks.iter_mut().zip(&*b) {
                let (left, right) = block.split_at_mut(8);
                left.copy_from_slice(&high);
                right.copy_from_slice(&(low ^ *b).to_be_bytes());
            }
            self.cipher.encrypt_batch(blocks);
            if self.spare_bits == 64 {
                self.add_narrow(a, blocks, self.modulus(round));
            } else {
                self.add_wide(a, blocks, self.modulus(round));
            }
            std::mem::swap(&mut a, &mut b);
        }
        for ((a, b), value) in a.iter().zip(&*b).zip(values) {
            *value = self.join(*a, *b);
        }
    }

    fn add_wide(&self, halves: &mut [u64], blocks: &[Block], modulus: u64) {
        for (half, block) in halves.iter_mut().zip(blocks) {
            *half = self.add(*half, u128::from_be_bytes((*block).into()), modulus);
        }
    }

    /// As [`Ff1::add_wide`], where `y` has 64 bits and the modulus 32: a multiplication by the reciprocal finds a quotient
    /// that is right or one too low.
    #[expect(clippy::unused_self, reason = "beside add_wide")]
    pub(super) fn add_narrow(&self, halves: &mut [u64], blocks: &[Block], modulus: u64) {
        let reciprocal = u128::from(u64::MAX / modulus);
        // Below zero it wraps to a great value, so the smaller one is right; no branch is needed.
        let reduce = |value: u64| value.min(value.wrapping_sub(modulus));
        for (half, block) in halves.iter_mut().zip(blocks) {
            let y = u64::from_be_bytes(*block.first_chunk().expect("a block has 16 bytes"));
            let quotient = ((u128::from(y) * reciprocal) >> 64) as u64;
            *half = reduce(reduce(*half + (y - quotient * modulus)));
        }
    }

    fn split(&self, value: u128) -> (u64, u64) {
        // Almost every value fits 64 bits, where a division is several times faster.
        if let Ok(value) = u64::try_from(value) {
            return (value / self.right, value % self.right);
        }
        let right = u128::from(self.right);
        ((value / right) as u64, (value % right) as u64)
    }

    fn join(&self, a: u64, b: u64) -> u128 {
        u128::from(a) * u128::from(self.right) + u128::from(b)
    }

    fn round_block(&self, tweak: Tweak, round: u8, half: u64) -> u128 {
        tweak.0 ^ (u128::from(round) << self.half_bits | u128::from(half))
    }

    fn modulus(&self, round: u8) -> u64 {
        if round.is_multiple_of(2) { self.left } else { self.right }
    }

    fn add(&self, half: u64, block: u128, modulus: u64) -> u64 {
        let sum = half + self.remainder(block, modulus);
        if sum >= modulus { sum - modulus } else { sum }
    }

    fn subtract(&self, half: u64, block: u128, modulus: u64) -> u64 {
        let y = self.remainder(block, modulus);
        if half >= y { half - y } else { half + modulus - y }
    }

    /// NUM(S) mod `modulus`, where S is the first `d` bytes of the block.
    fn remainder(&self, block: u128, modulus: u64) -> u64 {
        let y = block >> self.spare_bits;
        match u64::try_from(y) {
            Ok(y) => y % modulus,
            Err(_) => (y % u128::from(modulus)) as u64,
        }
    }
}

/// AES encryption only: FF1 also decrypts with it.
#[derive(Clone, Debug)]
enum Cipher {
    Aes128(Aes128Enc),
    Aes192(Aes192Enc),
    Aes256(Aes256Enc),
}

impl Cipher {
    fn new(key: &Key) -> Self {
        const CHECKED: &str = "a Key has 16, 24 or 32 bytes";
        let bytes = key.as_bytes();
        match bytes.len() {
            16 => Self::Aes128(Aes128Enc::new_from_slice(bytes).expect(CHECKED)),
            24 => Self::Aes192(Aes192Enc::new_from_slice(bytes).expect(CHECKED)),
            _ => Self::Aes256(Aes256Enc::new_from_slice(bytes).expect(CHECKED)),
        }
    }

    fn encrypt(&self, block: u128) -> u128 {
        let mut block = Block::from(block.to_be_bytes());
        match self {
            Self::Aes128(aes) => aes.encrypt_block(&mut block),
            Self::Aes192(aes) => aes.encrypt_block(&mut block),
            Self::Aes256(aes) => aes.encrypt_block(&mut block),
        }
        u128::from_be_bytes(block.into())
    }

    fn encrypt_batch(&self, blocks: &mut [Block]) {
        match self {
            Self::Aes128(aes) => aes.encrypt_blocks(blocks),
            Self::Aes192(aes) => aes.encrypt_blocks(blocks),
            Self::Aes256(aes) => aes.encrypt_blocks(blocks),
        }
    }
}

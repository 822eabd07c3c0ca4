//! A set of ASCII characters, printed as `[A-Z0-9]`.
//!
//! Invariant: a set contains only ASCII, so a text can be checked byte by byte.

use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CharSet(u128);

impl CharSet {
    pub(crate) const DIGITS: Self = Self::range(b'0', b'9');
    pub(crate) const UPPER: Self = Self::range(b'A', b'Z');
    pub(crate) const LOWER: Self = Self::range(b'a', b'z');
    pub(crate) const LETTERS: Self = Self::UPPER.union(Self::LOWER);
    pub(crate) const ALNUM: Self = Self::LETTERS.union(Self::DIGITS);

    pub(crate) const fn range(first: u8, last: u8) -> Self {
        let mut bits = 0;
        let mut byte = first;
        while byte <= last {
            bits |= 1 << byte;
            byte += 1;
        }
        Self(bits)
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        bytes.iter().fold(Self::default(), |set, byte| set.with(*byte))
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn with(self, byte: u8) -> Self {
        if byte.is_ascii() { Self(self.0 | 1 << byte) } else { self }
    }

    pub(crate) fn without(self, byte: u8) -> Self {
        if byte.is_ascii() { Self(self.0 & !(1 << byte)) } else { self }
    }

    pub(crate) fn contains(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 >> byte & 1 == 1
    }

    pub(crate) fn first_common(self, other: Self) -> Option<char> {
        let common = self.0 & other.0;
        (common != 0).then(|| char::from(u8::try_from(common.trailing_zeros()).unwrap_or(0)))
    }

    pub(crate) fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// Prints a class such as `[0-9A-Z_]`, with runs of three or more as ranges.
impl fmt::Display for CharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let mut byte = 0_u8;
        while byte < 128 {
            if !self.contains(byte) {
                byte += 1;
                continue;
            }
            let first = byte;
            while byte < 127 && self.contains(byte + 1) {
                byte += 1;
            }
            match byte - first {
                0 => write!(f, "{}", char::from(first))?,
                1 => write!(f, "{}{}", char::from(first), char::from(byte))?,
                _ => write!(f, "{}-{}", char::from(first), char::from(byte))?,
            }
            byte += 1;
        }
        f.write_str("]")
    }
}

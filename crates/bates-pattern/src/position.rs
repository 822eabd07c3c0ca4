//! Positions: integers that JSON and JavaScript represent exactly.

use std::fmt;

/// The index of a number in its scope, below 2^53. An identifier is a pure function of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The number of positions: 2^53, because JavaScript cannot represent every larger integer.
    pub const COUNT: u64 = 1 << 53;

    /// The lowest position.
    pub const MIN: Self = Self(0);

    /// The highest position.
    pub const MAX: Self = Self(Self::COUNT - 1);

    /// The position `value`; `None` if it is 2^53 or more.
    pub const fn new(value: u64) -> Option<Self> {
        if value < Self::COUNT { Some(Self(value)) } else { None }
    }

    /// The position as an integer.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

//! Positions, small enough for the numbers of JSON and JavaScript.

use std::fmt;

/// A place in a scope's numbering, below 2^53. An identifier is a pure function of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// How many positions there are: 2^53, where doubles stop telling integers apart.
    pub const COUNT: u64 = 1 << 53;

    /// The lowest position.
    pub const MIN: Self = Self(0);

    /// The highest position.
    pub const MAX: Self = Self(Self::COUNT - 1);

    /// The position `value`, or `None` from 2^53 on.
    pub const fn new(value: u64) -> Option<Self> {
        if value < Self::COUNT { Some(Self(value)) } else { None }
    }

    /// The position as a plain integer.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

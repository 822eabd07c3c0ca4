//! How much is held in memory, and what became of it.

/// How much a scope, or all scopes of a series, hold in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Scopes that are in memory.
    pub scopes: u64,
    /// Positions granted and not handed out.
    pub held: u64,
}

/// What became of the positions that were held when a dispenser closed, or a scope was evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Scopes that were sealed.
    pub scopes: u64,
    /// Positions that went back to their cursors.
    pub returned: u64,
    /// Positions that remain as gaps.
    pub gaps: u64,
}

impl Closed {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            scopes: self.scopes + other.scopes,
            returned: self.returned + other.returned,
            gaps: self.gaps + other.gaps,
        }
    }
}

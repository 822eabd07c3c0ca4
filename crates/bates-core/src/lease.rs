//! A lease: a half-open range of positions, two integers however long it is.

use std::fmt;

/// The positions from `from` up to, but not including, `to`. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    from: u64,
    to: u64,
}

impl Lease {
    /// The range, or `None` if it is empty.
    pub const fn new(from: u64, to: u64) -> Option<Self> {
        if from < to { Some(Self { from, to }) } else { None }
    }

    /// The first position.
    pub const fn from(self) -> u64 {
        self.from
    }

    /// The first position past it.
    pub const fn to(self) -> u64 {
        self.to
    }

    /// How many positions it has; never 0.
    pub const fn count(self) -> u64 {
        self.to - self.from
    }

    /// The first `count` positions and the rest.
    pub(crate) fn split(self, count: u64) -> (Option<Self>, Option<Self>) {
        let at = self.from.saturating_add(count).min(self.to);
        (Self::new(self.from, at), Self::new(at, self.to))
    }

    /// Both as one, if `next` begins where this ends.
    pub(crate) fn joined(self, next: Self) -> Option<Self> {
        (self.to == next.from).then_some(Self { from: self.from, to: next.to })
    }
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.from, self.to)
    }
}

/// Positions handed to one caller, ascending: mostly one range, seldom several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub(crate) first: Lease,
    pub(crate) rest: Vec<Lease>,
}

impl Taken {
    /// How many positions.
    pub fn count(&self) -> u64 {
        self.first.count() + self.rest.iter().map(|lease| lease.count()).sum::<u64>()
    }

    /// The ranges, ascending.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// The last position.
    pub fn last(&self) -> u64 {
        self.rest.last().unwrap_or(&self.first).to - 1
    }

    /// The positions, ascending.
    pub fn positions(&self) -> impl Iterator<Item = u64> {
        self.leases().flat_map(|lease| lease.from..lease.to)
    }
}

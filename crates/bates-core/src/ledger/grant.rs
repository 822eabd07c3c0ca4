//! What is asked of a cursor and what comes of it: positions wanted, granted, and given back.

use crate::range::Lease;
use crate::scope::Place;
use crate::series::Promise;
use crate::store::StoreError;
use bates_pattern::Position;

/// Positions that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Where.
    pub place: Place,
    /// How many; fewer are granted at the end of the space and, but for a lease, before positions that were set aside,
    /// never none. At least 1.
    pub count: u64,
    /// How many of them somebody waits for; the others are for later. Only of a lease is that less than all.
    pub least: u64,
    /// Where a new scope begins.
    pub start: u64,
    /// The first position past the space.
    pub end: u64,
    /// How many scopes the series may have.
    pub scopes_max: u64,
    /// What becomes of them.
    pub purpose: Purpose,
    /// What this process believes that the series promises: a shared store refuses what is outdated.
    pub promise: Option<Promise>,
    /// For a lease: the first position that the holder still holds. What lies below was handed out.
    pub held_from: Option<u64>,
}

/// A grant takes at most 1/64 of the remaining space, or what is waited for: what a crash skips shrinks near the end.
const SHARES: u64 = 64;

impl Want {
    /// How many may be granted where the cursor stands at `next`.
    pub fn at_most(&self, next: u64) -> u64 {
        match self.purpose {
            Purpose::Lease => {
                let share = self.end.saturating_sub(next) / SHARES;
                self.count.min(share.max(self.least).max(1))
            }
            Purpose::Pool | Purpose::HandOut | Purpose::Issue => self.count,
        }
    }
}

/// What becomes of granted positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// They are held in memory and handed out later.
    Lease,
    /// They go into a shared pool, and are held by whoever asked for them until they are there.
    Pool,
    /// They are handed out by this very answer: all or none.
    HandOut,
    /// They are handed out by this very answer: all or none, and written to the ledger in the same commit.
    Issue,
}

impl Purpose {
    /// Whether a part of what was wanted is of no use.
    pub const fn is_all_or_none(self) -> bool {
        matches!(self, Self::HandOut | Self::Issue)
    }
}

/// Positions that were granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The range.
    pub lease: Lease,
    /// The version of the cursor after the grant.
    pub version: u64,
    /// Positions in the range that were set aside and must not be handed out, ascending. Only a lease has any.
    pub aside: Vec<Position>,
}

/// The unused end of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where.
    pub place: Place,
    /// The unused positions; they end where the cursor stood after the grant.
    pub lease: Lease,
    /// The version of the cursor after the grant.
    pub version: u64,
    /// Other positions that were held and cannot be given back: they are gaps.
    pub lost: Vec<Lease>,
}

/// What became of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surrendered {
    /// The cursor went back; the positions will be granted again.
    Returned,
    /// Something was granted since; the positions are a gap.
    Gap,
}

/// A grant that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The space has no more, or where a part is of no use, not as many.
    #[error("only {left} positions are left")]
    Exhausted {
        /// How many are left.
        left: u64,
        /// Whether other nodes may still hold some.
        elsewhere: bool,
    },
    /// The series has as many scopes as it may have.
    #[error("the series has {0} scopes, its limit")]
    TooManyScopes(u64),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

//! Requests for positions, grants, and releases of unused positions.

use crate::range::PositionRange;
use crate::scope::ScopeId;
use crate::series::Promise;
use crate::store::StoreError;
use bates_pattern::Position;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRequest {
    pub scope_id: ScopeId,
    /// At least 1. `HandOut` and `Issue` get all or an error. `Hold` gets fewer near the end of the space, and `Pool` also
    /// before an adopted position.
    pub count: u64,
    /// How many of them callers wait for now. Less than `count` only for `Hold`.
    pub count_needed: u64,
    /// Where a new scope begins.
    pub start: u64,
    /// The first position past the space.
    pub end: u64,
    pub scopes_max: u64,
    pub purpose: GrantPurpose,
    /// The promise that this process knows; a shared store refuses an outdated one. `None` is not checked.
    pub promise: Option<Promise>,
    /// For `Hold`: the first position that the process still holds of earlier ranges. It has handed out all below it.
    pub held_from: Option<u64>,
}

/// A held range takes at most 1/64 of the remaining space, or the positions that callers wait for. So nodes hold, and a
/// crash skips, little near the end, and the last positions are granted one by one.
const HOLD_SHARE_DIVISOR: u64 = 64;

/// The largest range that may be held if `left` positions remain, unless callers wait for more.
pub(crate) const fn hold_max(left: u64) -> u64 {
    let share = left / HOLD_SHARE_DIVISOR;
    if share == 0 { 1 } else { share }
}

impl GrantRequest {
    /// How many positions may be held at once where the cursor stands at `next`.
    pub(super) fn hold_count(&self, next: u64) -> u64 {
        self.count.min(hold_max(self.end.saturating_sub(next)).max(self.count_needed))
    }
}

/// How granted positions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantPurpose {
    /// The process holds them in memory and hands them out later.
    Hold,
    /// They go into a shared pool; the process that asked holds them until they are there.
    Pool,
    /// For one caller, now: all or none.
    HandOut,
    /// Like `HandOut`, and the same commit writes them to the table `ledger`: for gapless series.
    Issue,
}

impl GrantPurpose {
    pub const fn is_all_or_none(self) -> bool {
        matches!(self, Self::HandOut | Self::Issue)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub range: PositionRange,
    /// The version of the cursor after the grant.
    pub version: u64,
    /// Adopted positions in the range, ascending, which must not be handed out. Only a held range has any.
    pub adopted: Vec<Position>,
}

/// The unused end of a held range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRequest {
    pub scope_id: ScopeId,
    /// The unused positions; they end where the cursor stood after the grant.
    pub range: PositionRange,
    /// The version of the cursor after the grant.
    pub version: u64,
    /// Other positions that were held and cannot be released: they become gaps.
    pub lost: Vec<PositionRange>,
}

/// The effect of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The cursor went back; the positions will be granted again.
    Returned,
    /// The cursor was written since; the positions are a gap.
    Gap,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// No position is left, or fewer than a request for all or none wants.
    #[error("only {left} consecutive positions are available")]
    Exhausted {
        left: u64,
        /// Whether other nodes may still hold some.
        held_elsewhere: bool,
    },
    #[error("the series has {0} scopes, its limit")]
    TooManyScopes(u64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

//! What the store writes for one scope.

use crate::gap::{Missing, Reason};
use crate::range::{Lease, Ranges};
use crate::store::Cursor;
use bates_pattern::Position;

/// What the store writes for one scope, all in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeChange {
    /// The new cursor; `None` if it stays.
    pub cursor: Option<Cursor>,
    /// Whether the scope is new: then the series has one more.
    pub is_new: bool,
    /// Ranges for the ledger; adjacent ranges are joined.
    pub issued: Vec<Lease>,
    /// Ranges that this process holds from now on.
    pub leased: Vec<Lease>,
    /// Ranges that this process has for a pool.
    pub pooled: Vec<Lease>,
    /// Ranges that callers have from now on, for a store that keeps what a process holds as one range.
    pub handed_out: Vec<Lease>,
    /// This process has handed out all that it held below this position.
    pub used_to: Option<u64>,
    /// As `used_to`, known because the scope is exhausted: see [`Decision::know_holders`](super::Decision::know_holders).
    pub spent_to: Option<u64>,
    /// This process holds nothing below this position any more, except what `leased` adds.
    pub released_to: Option<u64>,
    /// The first position that this process holds afterwards, for a store that keeps it with the cursor.
    pub held_from: Option<u64>,
    /// Positions that the holders of [`ScopeBefore::held`](super::ScopeBefore::held) do not hold any more.
    pub given_up: Ranges,
    /// Ranges that are gaps from now on.
    pub lost: Vec<Missing>,
    /// Positions that are adopted from now on.
    pub adopted: Vec<Position>,
    /// Whether the scope's pool must be checked against its Redis server again.
    pub forgets_pool_server: bool,
}

impl ScopeChange {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.cursor.is_none()
            && self.used_to.is_none()
            && self.released_to.is_none()
            && self.lost.is_empty()
            && !self.forgets_pool_server
    }

    pub(super) fn issue(&mut self, range: Lease) {
        match self.issued.last_mut() {
            Some(last) if last.to() == range.from() => {
                *last = Lease::new(last.from(), range.to()).unwrap_or(*last);
            }
            _ => self.issued.push(range),
        }
    }

    pub(super) fn lose(&mut self, ranges: impl IntoIterator<Item = Lease>, reason: Reason) {
        self.lost.extend(Missing::all(ranges, reason));
    }
}

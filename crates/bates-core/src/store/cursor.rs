//! The cursors of a store: moved, durably, before anything is handed out.

use super::StoreResult;
use crate::ledger::{Grant, GrantError, Surrendered, Tail, Want};
use crate::range::Lease;
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;
use bates_pattern::Position;

/// Keeps cursors. Each call that moves one loads the scope, lets [`crate::ledger::decide`] decide, and writes the change,
/// in one transaction.
///
/// Invariant: when a call answers with a grant, the cursor past it is on disk. A call that was cancelled or
/// failed may have moved a cursor all the same: its range is then lost, never granted again.
#[trait_variant::make(Send)]
pub trait CursorStore: Send + Sync + 'static {
    /// Moves a cursor and answers with the range passed over. Calls that wait together share one commit.
    async fn grant(&self, want: Want) -> Result<Grant, GrantError>;

    /// Gives the unused end of a lease back, if nothing was granted since: otherwise it remains a gap.
    async fn surrender(&self, tail: Tail) -> StoreResult<Surrendered>;

    /// Where a cursor stands. Never creates one.
    async fn cursor(&self, place: Place) -> StoreResult<Option<Cursor>>;

    /// The scopes of a series in the order of their keys, after `after`, at most `limit`.
    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>>;

    /// The ranges that were issued one by one in a gapless scope, ascending, neighbours joined.
    async fn ledger(&self, place: Place) -> StoreResult<Vec<Lease>>;

    /// Writes down that positions which were granted to this process, or handed out by it, reached no caller: they are
    /// gaps, `burned`. May be called twice without harm.
    async fn burn(&self, burned: Vec<(Place, Lease)>) -> StoreResult<()>;

    /// Raises a cursor to `floor`, creating it if need be; a cursor that is higher stays. Ranges that were granted
    /// before lie below the floor: recall them afterwards.
    async fn raise_floor(&self, place: Place, floor: u64) -> StoreResult<Cursor>;

    /// Sets positions of a scope aside, creating it if need be: another system gave their numbers out, and no grant
    /// holds them from now on. Answers how many of them the cursor had passed before. Ranges that were granted before
    /// may hold them: recall those afterwards.
    async fn set_aside(&self, place: Place, positions: Vec<Position>) -> StoreResult<u64>;

    /// The positions of a scope that were set aside, ascending, from `from` on, at most `limit`.
    async fn aside(&self, place: Place, from: u64, limit: usize) -> StoreResult<Vec<Position>>;
}

/// A durable place in a scope: the first position not yet granted, and how often it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The first position not yet granted.
    pub next: u64,
    /// Raised by every write, so that a holder that slept cannot mistake a new cursor for the one it knew.
    pub version: u64,
}

//! The cursors of a store: moved, durably, before anything is handed out.

use std::future::Future;

use super::StoreError;
use crate::ledger::{Grant, GrantError, Surrendered, Tail, Want};
use crate::range::Lease;
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

/// Keeps cursors. Each call that moves one loads the scope, lets [`crate::ledger::decide`] decide, and writes the change,
/// in one transaction.
///
/// Invariant: when a call answers with a grant, the cursor past it is on disk. A call that was cancelled or
/// failed may have moved a cursor all the same: its range is then lost, never granted again.
pub trait CursorStore: Send + Sync + 'static {
    /// Moves a cursor and answers with the range passed over. Calls that wait together share one commit.
    fn grant(&self, want: Want) -> impl Future<Output = Result<Grant, GrantError>> + Send;

    /// Gives the unused end of a lease back, if nothing was granted since: otherwise it remains a gap.
    fn surrender(&self, tail: Tail) -> impl Future<Output = Result<Surrendered, StoreError>> + Send;

    /// Where a cursor stands. Never creates one.
    fn cursor(&self, place: Place) -> impl Future<Output = Result<Option<Cursor>, StoreError>> + Send;

    /// The scopes of a series in the order of their keys, after `after`, at most `limit`.
    fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(ScopeKey, Cursor)>, StoreError>> + Send;

    /// The ranges that were issued one by one in a gapless scope, ascending, neighbours joined.
    fn ledger(&self, place: Place) -> impl Future<Output = Result<Vec<Lease>, StoreError>> + Send;

    /// Writes down that positions which were granted to this process, or handed out by it, reached no caller: they are
    /// gaps, `burned`. May be called twice without harm.
    fn burn(&self, burned: Vec<(Place, Lease)>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Raises a cursor to `floor`, creating it if need be; a cursor that is higher stays. Ranges that were granted
    /// before lie below the floor: recall them afterwards.
    fn raise_floor(
        &self,
        place: Place,
        floor: u64,
    ) -> impl Future<Output = Result<Cursor, StoreError>> + Send;

    /// Sets positions of a scope aside, creating it if need be: another system gave their numbers out, and no grant
    /// holds them from now on. Answers how many of them the cursor had passed before. Ranges that were granted before
    /// may hold them: recall those afterwards.
    fn set_aside(
        &self,
        place: Place,
        positions: Vec<u64>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// The positions of a scope that were set aside, ascending, from `from` on, at most `limit`.
    fn aside(
        &self,
        place: Place,
        from: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<u64>, StoreError>> + Send;
}

/// A durable place in a scope: the first position not yet granted, and how often it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The first position not yet granted.
    pub next: u64,
    /// Raised by every write, so that a holder that slept cannot mistake a new cursor for the one it knew.
    pub version: u64,
}

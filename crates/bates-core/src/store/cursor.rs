//! The port to the cursors: a store moves them durably before it hands out positions.

use super::StoreResult;
use crate::ledger::{Grant, GrantError, GrantRequest, ReleaseOutcome, ReleaseRequest};
use crate::operation::Operation;
use crate::range::PositionRange;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;
use bates_pattern::Position;

/// A call that moves a cursor loads the scope, calls [`crate::ledger::decide`], and writes the change: in one transaction.
///
/// Invariant: when a call answers with a grant, the cursor past it is on disk. A call that was cancelled or failed may
/// have moved the cursor: then its range is lost, never granted again.
#[trait_variant::make(Send)]
pub trait CursorStore: Send + Sync + 'static {
    /// Moves a cursor and answers with the range that it passed. Calls that wait together share one commit.
    async fn grant(&self, request: GrantRequest) -> Result<Grant, GrantError>;

    /// Grants to many scopes, in few commits. Answers in the order of the requests.
    async fn grant_all(&self, requests: Vec<GrantRequest>) -> Vec<Result<Grant, GrantError>>;

    /// Releases the unused end of a range, if the cursor was not written since; otherwise it becomes a gap.
    async fn release(&self, release: ReleaseRequest) -> StoreResult<ReleaseOutcome>;

    /// Releases ranges of many scopes, in few commits if they come in the order of their scopes. Answers in their order.
    async fn release_all(&self, releases: Vec<ReleaseRequest>) -> Vec<StoreResult<ReleaseOutcome>>;

    /// Reads a cursor. Never creates one.
    async fn cursor(&self, scope_id: ScopeId) -> StoreResult<Option<Cursor>>;

    /// Reads the cursors of scopes of a series at once, in their order. Never creates one.
    async fn cursors(&self, series: SeriesName, scopes: Vec<ScopeKey>) -> StoreResult<Vec<Option<Cursor>>>;

    /// The scopes of a series in the order of their keys, after `after`, at most `limit`.
    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Cursor)>>;

    /// The ranges of a scope in the table `ledger`, ascending, neighbours joined.
    async fn issued_ranges(&self, scope_id: ScopeId) -> StoreResult<Vec<PositionRange>>;

    /// Records granted positions that reached no caller as gaps, `burned`. A second call changes nothing.
    async fn burn(&self, burned: Vec<(ScopeId, PositionRange)>) -> StoreResult<()>;

    /// Raises a cursor to `floor`, or creates it there; a higher one stays. Recall earlier ranges afterwards.
    async fn raise_floor(
        &self,
        scope_id: ScopeId,
        floor: u64,
        operation: Option<Operation>,
    ) -> StoreResult<Cursor>;

    /// Adopts positions of a scope, creating it if it is new: another system has issued their numbers, so no later grant
    /// hands them out. Answers how many the cursor had passed. Earlier ranges may hold them: recall those afterwards.
    async fn adopt_positions(
        &self,
        scope_id: ScopeId,
        positions: Vec<Position>,
        operation: Option<Operation>,
    ) -> StoreResult<u64>;

    /// The adopted positions of a scope, ascending, from `from` on, at most `limit`.
    async fn adopted_positions(&self, of: ScopeId, from: u64, limit: usize) -> StoreResult<Vec<Position>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The first position not yet granted.
    pub next: u64,
    /// Raised by every write: a release has no effect if the cursor was written since the grant.
    pub version: u64,
}

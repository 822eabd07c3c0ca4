//! Moving a store: all that it keeps can be read, and written as it was elsewhere.

use bates_pattern::Position;
use uuid::Uuid;

use super::StoreResult;
use crate::moving::{Kept, Mark, Page, Pinning, Request, SetAside};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// Reads and writes whole stores, page by page.
#[trait_variant::make(Send)]
pub trait MoveStore: Send + Sync + 'static {
    /// Every series that was ever pinned, by name, with its permutation key.
    async fn definitions(&self) -> StoreResult<Vec<Pinning>>;

    /// The positions of a series that were set aside, in the order of their scopes and ascending, after `after`, at
    /// most `limit` of all scopes together.
    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> StoreResult<Vec<SetAside>>;

    /// Documents by their ids, ascending, after `after`, at most `limit`, until `bytes` of bodies are reached: one more
    /// than fits, so that a large one is read too.
    async fn kept(&self, after: Option<Uuid>, limit: usize, bytes: usize) -> StoreResult<Vec<Kept>>;

    /// Requests by their keys, in an order that is the store's own, after `after`, at most `limit`.
    async fn requests(&self, after: Option<Request>, limit: usize) -> StoreResult<Vec<Request>>;

    /// Writes a page of a move as it was elsewhere. A cursor that is here already never falls; of all else, what was
    /// written before is written over. Answers `false`, and writes nothing, unless the store is marked as arriving by
    /// this run.
    async fn adopt(&self, run: Uuid, page: Page) -> StoreResult<bool>;

    /// The mark of the store.
    async fn marked(&self) -> StoreResult<Option<Mark>>;

    /// Changes the mark of the store, durably, if it is `expected`; with `None` it may be served. Answers whether it has
    /// the new mark now. A store is marked as arriving only if it has no series.
    async fn mark(&self, expected: Option<Mark>, mark: Option<Mark>) -> StoreResult<bool>;
}

//! The port to whole stores: everything can be read page by page, and written to another store as it was.

use bates_pattern::Position;
use uuid::Uuid;

use super::StoreResult;
use crate::moving::{Kept, Mark, Page, Pinning, Request, SetAside};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

#[trait_variant::make(Send)]
pub trait MoveStore: Send + Sync + 'static {
    /// Every series that was ever pinned, in the order of their names, with its permutation key.
    async fn definitions(&self) -> StoreResult<Vec<Pinning>>;

    /// The adopted positions of a series, by scope and ascending, after `after`, at most `limit` of all scopes together.
    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> StoreResult<Vec<SetAside>>;

    /// Documents by their ids, ascending, after `after`, at most `limit`. The page ends with the document whose body
    /// reaches `bytes`, so that a large one is read too.
    async fn kept(&self, after: Option<Uuid>, limit: usize, bytes: usize) -> StoreResult<Vec<Kept>>;

    /// Requests by their keys, in the store's own order, after `after`, at most `limit`.
    async fn requests(&self, after: Option<Request>, limit: usize) -> StoreResult<Vec<Request>>;

    /// Writes a page of a move. A cursor that exists never falls; everything else is overwritten. Answers `false`, and
    /// writes nothing, unless the store is marked as arriving by this run.
    async fn adopt(&self, run: Uuid, page: Page) -> StoreResult<bool>;

    async fn marked(&self) -> StoreResult<Option<Mark>>;

    /// Changes the mark, durably, if it is `expected`, as [`Mark::change`] decides; answers whether the store has the new
    /// mark now. A store without a mark may be served; one with series cannot be marked as arriving.
    async fn mark(&self, expected: Option<Mark>, mark: Option<Mark>) -> StoreResult<bool>;
}

//! The port for moves: everything can be read page by page and written to another store unchanged.

use bates_pattern::Position;
use uuid::Uuid;

use super::StoreResult;
use crate::moving::{MoveMark, MovePage, MovedAdoptions, MovedDocument, MovedKey, PinnedSeries};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

#[trait_variant::make(Send)]
pub trait MoveStore: Send + Sync + 'static {
    /// Every series that was ever pinned, in the order of their names, with its permutation key.
    async fn definitions(&self) -> StoreResult<Vec<PinnedSeries>>;

    /// The adopted positions of a series, by scope and ascending, after `after`, at most `limit` of all scopes together.
    async fn moved_adoptions(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> StoreResult<Vec<MovedAdoptions>>;

    /// Documents by their ids, ascending, after `after`, at most `limit`. The page ends with the document whose body
    /// reaches `bytes`, so that a large one is read too.
    async fn moved_documents(
        &self,
        after: Option<Uuid>,
        limit: usize,
        bytes: usize,
    ) -> StoreResult<Vec<MovedDocument>>;

    /// Requests by their keys, in the store's own order, after `after`, at most `limit`.
    async fn moved_keys(&self, after: Option<MovedKey>, limit: usize) -> StoreResult<Vec<MovedKey>>;

    /// Writes a page of a move. A cursor that exists never falls; everything else is overwritten. Answers `false`, and
    /// writes nothing, unless the store is marked as arriving by this run.
    async fn import_page(&self, run: Uuid, page: MovePage) -> StoreResult<bool>;

    async fn mark(&self) -> StoreResult<Option<MoveMark>>;

    /// Changes the mark, durably, if it is `expected`, as [`MoveMark::change`] decides; answers whether the store has the
    /// new mark now. A store without a mark may be served; one with series cannot be marked as arriving.
    async fn change_mark(&self, expected: Option<MoveMark>, mark: Option<MoveMark>) -> StoreResult<bool>;
}

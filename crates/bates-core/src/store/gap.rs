//! The port to what a store knows of positions, and to the gaps that reconciliation found.

use super::StoreResult;
use crate::gap::{Gap, GapFilter, MissingRange, ReadPurpose, Reconciliation, ScopeRecord};
use crate::moving::MovedScope;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;

#[trait_variant::make(Send)]
pub trait GapStore: Send + Sync + 'static {
    /// What is known of the scopes of a series, in the order of their keys, after `after`, at most `limit`.
    async fn scope_records(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: ReadPurpose,
    ) -> StoreResult<Vec<ScopeRecord>>;

    /// The accounts of the scopes of a series, in the order of their keys, after `after`, at most `limit`.
    async fn reconciliations(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Reconciliation)>> {
        let known = self.scope_records(series, after, limit, ReadPurpose::Reconcile);
        async { Ok(known.await?.into_iter().map(ScopeRecord::reconciliation).collect()) }
    }

    /// The scopes of a series, in the order of their keys, after `after`, at most `limit`, as another store adopts them.
    async fn moved_scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<MovedScope>> {
        let known = self.scope_records(series, after, limit, ReadPurpose::Move);
        async { Ok(known.await?.into_iter().map(ScopeRecord::moved_scope).collect()) }
    }

    /// Replaces the gaps of scopes. A gap that was there before keeps the time when it was first seen.
    async fn replace_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<MissingRange>)>,
    ) -> StoreResult<()>;

    /// Gaps in the order of their places and positions, after `after`, at most `limit`.
    async fn gaps(&self, of: GapFilter, after: Option<(ScopeId, u64)>, limit: usize)
    -> StoreResult<Vec<Gap>>;
}

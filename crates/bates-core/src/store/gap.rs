//! The port to the records of all positions, and to the gaps that reconciliation found.

use jiff::Timestamp;

use super::StoreResult;
use crate::gap::{Gap, GapFilter, MissingRange, ReadPurpose, ScopePositions, ScopeRecord};
use crate::moving::MovedScope;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;

#[trait_variant::make(Send)]
pub trait GapStore: Send + Sync + 'static {
    /// The records of a series' scopes, in the order of their keys, after `after`, at most `limit`.
    async fn scope_records(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: ReadPurpose,
    ) -> StoreResult<Vec<ScopeRecord>>;

    /// As [`Self::scope_records`], for reconciliation.
    async fn scope_positions(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, ScopePositions)>> {
        let records = self.scope_records(series, after, limit, ReadPurpose::Reconcile);
        async { Ok(records.await?.into_iter().map(ScopeRecord::positions).collect()) }
    }

    /// As [`Self::scope_records`], for a move to another store.
    async fn moved_scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<MovedScope>> {
        let records = self.scope_records(series, after, limit, ReadPurpose::Move);
        async { Ok(records.await?.into_iter().map(ScopeRecord::moved_scope).collect()) }
    }

    /// Replaces the gaps of these scopes. A gap that was known before keeps the time when it was first seen.
    async fn replace_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<MissingRange>)>,
    ) -> StoreResult<()>;

    /// Notes that the gaps of a series are as of `at`: a reconciliation that began then has written all of them.
    async fn set_reconciled(&self, series: SeriesName, at: Timestamp) -> StoreResult<()>;

    /// As of when the gaps of each series are, to the millisecond, by name. A series that was never reconciled is absent.
    async fn reconciled(&self) -> StoreResult<Vec<(SeriesName, Timestamp)>>;

    /// Gaps in the order of their scopes and positions, after `after`, at most `limit`.
    async fn gaps(&self, of: GapFilter, after: Option<(ScopeId, u64)>, limit: usize)
    -> StoreResult<Vec<Gap>>;
}

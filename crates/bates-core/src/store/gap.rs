//! The port to what a store knows of positions, and to the gaps that were found in it.

use super::StoreError;
use crate::gap::{Account, Gap, GapFilter, Missing};
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

/// A store that can be reconciled. What every one must do is tested in one place, `bates_testkit::claims`.
#[trait_variant::make(Send)]
pub trait GapStore: Send + Sync + 'static {
    /// The accounts of a series, scope by scope in the order of their keys, after `after`, at most `limit`.
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Account)>, StoreError>;

    /// Writes down the gaps of scopes: these and no others. One that was there keeps the time when it was first seen.
    async fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> Result<(), StoreError>;

    /// Gaps in the order of their places and positions, after `after`, at most `limit`.
    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, StoreError>;
}

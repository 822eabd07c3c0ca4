//! The port to what a store knows of positions, and to the gaps that were found in it.

use std::future::Future;

use super::StoreError;
use crate::gap::{Account, Gap, GapFilter, Missing};
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

/// A store that can be reconciled. What every one must do is tested in one place, `bates_testkit::claims`.
pub trait GapStore: Send + Sync + 'static {
    /// The accounts of a series, scope by scope in the order of their keys, after `after`, at most `limit`.
    fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(ScopeKey, Account)>, StoreError>> + Send;

    /// Writes down the gaps of scopes: these and no others. One that was there keeps the time when it was first seen.
    fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gaps in the order of their places and positions, after `after`, at most `limit`.
    fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Gap>, StoreError>> + Send;
}

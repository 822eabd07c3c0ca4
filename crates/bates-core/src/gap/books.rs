//! The port to what a store knows of positions, and to the gaps that were found in it.

use std::future::Future;

use super::{Account, Gap, Missing};
use crate::document::Outbox;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::store::StoreError;

/// A store that can be reconciled. What every one must do is tested in one place, `bates_testkit::claims`.
pub trait Books: Outbox {
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

/// Which gaps. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapFilter {
    /// Those of a series.
    pub series: Option<SeriesName>,
    /// Those of a scope of any series.
    pub scope: Option<ScopeKey>,
}

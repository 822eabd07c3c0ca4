//! The port to what a store knows of positions, and to the gaps that reconciliation found.

use super::StoreResult;
use crate::gap::{Account, Gap, GapFilter, KnownFor, KnownScope, Missing};
use crate::moving::Adopted;
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

#[trait_variant::make(Send)]
pub trait GapStore: Send + Sync + 'static {
    /// What is known of the scopes of a series, in the order of their keys, after `after`, at most `limit`.
    async fn known(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: KnownFor,
    ) -> StoreResult<Vec<KnownScope>>;

    /// The accounts of the scopes of a series, in the order of their keys, after `after`, at most `limit`.
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Account)>> {
        let known = self.known(series, after, limit, KnownFor::Account);
        async { Ok(known.await?.into_iter().map(KnownScope::account).collect()) }
    }

    /// The scopes of a series, in the order of their keys, after `after`, at most `limit`, as another store adopts them.
    async fn leaving(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<Adopted>> {
        let known = self.known(series, after, limit, KnownFor::Move);
        async { Ok(known.await?.into_iter().map(KnownScope::leaving).collect()) }
    }

    /// Replaces the gaps of scopes. A gap that was there before keeps the time when it was first seen.
    async fn put_gaps(&self, series: SeriesName, scopes: Vec<(ScopeKey, Vec<Missing>)>) -> StoreResult<()>;

    /// Gaps in the order of their places and positions, after `after`, at most `limit`.
    async fn gaps(&self, of: GapFilter, after: Option<(Place, u64)>, limit: usize) -> StoreResult<Vec<Gap>>;
}

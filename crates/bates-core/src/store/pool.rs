//! The port to what a store knows of shared pools: their epochs, and which positions were granted to them.

use super::StoreResult;
use crate::pool::{Pool, Renewal, Settling};
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;

/// A store that knows shared pools. What every one must do is tested in one place, `bates_testkit::claims`.
///
/// Positions are granted to a pool with [`crate::Purpose::Pool`], and held by the process that asked for them until
/// it settles what became of them. Positions that a floor or a setting aside may concern are in no pool afterwards:
/// both make its server unknown, so that it is renewed.
#[trait_variant::make(Send)]
pub trait PoolStore: Send + Sync + 'static {
    /// How a pool stands; one that is new begins at epoch 0, on no server.
    async fn pool(&self, place: Place) -> StoreResult<Pool>;

    /// The pools of a series that were ever asked for, in the order of their scopes, after `after`, at most `limit`.
    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>>;

    /// Moves the epoch of a pool on, and writes down what was pushed into it before as lost, `pool_invalidated`.
    /// `None`, and nothing written, if its epoch is not the one that was seen: then another node moved it.
    async fn renew_pool(&self, place: Place, renewal: Renewal) -> StoreResult<Option<Pool>>;

    /// Writes down what became of positions that were granted to a pool. May be done twice without harm.
    async fn settle_pool(&self, place: Place, settling: Settling) -> StoreResult<()>;
}

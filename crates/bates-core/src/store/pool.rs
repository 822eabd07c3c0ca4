//! The port to the records of shared pools: their epochs, and the positions that were granted to them.

use super::StoreResult;
use crate::pool::{Pool, PoolSettlement, RenewRequest};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;

/// Positions are granted to a pool with [`GrantPurpose::Pool`](crate::GrantPurpose::Pool); the process that asked holds
/// them until it settles them. Raising a floor and adopting positions forget the server of a pool, so it is renewed.
#[trait_variant::make(Send)]
pub trait PoolStore: Send + Sync + 'static {
    /// A new pool begins at epoch 0, on no server.
    async fn pool(&self, scope_id: ScopeId) -> StoreResult<Pool>;

    /// Every pool that a series ever had, in the order of their scopes, after `after`, at most `limit`.
    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>>;

    /// Raises the epoch of a pool; positions pushed before are lost, `pool_invalidated`. Answers `None`, and writes
    /// nothing, if its epoch is not `renewal.expected_epoch`: then another node has raised it.
    async fn renew_pool(&self, scope_id: ScopeId, renewal: RenewRequest) -> StoreResult<Option<Pool>>;

    /// Writes the fate of positions that were granted to a pool. A second call changes nothing.
    async fn settle_pool(&self, scope_id: ScopeId, settlement: PoolSettlement) -> StoreResult<()>;
}

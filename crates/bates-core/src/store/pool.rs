//! The port to the records of shared pools: their epochs, and the positions that were granted to them.

use super::StoreResult;
use crate::operation::Operation;
use crate::pool::{Pool, PoolSettlement, RenewRequest};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;

/// Positions are granted to a pool with [`GrantPurpose::Pool`](crate::GrantPurpose::Pool); that process holds them
/// until it settles them. Raising a floor or adopting positions clears the server of a pool, so that it is renewed.
#[trait_variant::make(Send)]
pub trait PoolStore: Send + Sync + 'static {
    /// The pool of a scope. A missing one is created, with epoch 0 and without a server; the operation is recorded then.
    async fn pool(&self, scope_id: ScopeId, operation: Option<Operation>) -> StoreResult<Pool>;

    /// Every pool that a series ever had, in the order of their scopes, after `after`, at most `limit`.
    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>>;

    /// Raises the epoch of a pool. Positions pushed before become gaps, `pool_invalidated`. Returns `None`, and writes
    /// nothing, if the epoch is not `renewal.expected_epoch`: another node has raised it.
    async fn renew_pool(&self, scope_id: ScopeId, renewal: RenewRequest) -> StoreResult<Option<Pool>>;

    /// Records what became of positions that were granted to a pool. A repeated call changes nothing.
    async fn settle_pool(&self, scope_id: ScopeId, settlement: PoolSettlement) -> StoreResult<()>;
}

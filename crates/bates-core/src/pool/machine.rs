//! The shared pools of a machine.

use std::sync::Arc;

use uuid::Uuid;

use super::fill::{PoolFill, Progress};
use super::{FillError, FillOutcome, FillResult, Pool, PoolSet, ServerIdentity};
use crate::audit::Actor;
use crate::code::ErrorCode;
use crate::machine::Machine;
use crate::operation::OperationKind;
use crate::scope::{ScopeError, ScopeId, ScopeKey, ScopeParams, each_page};
use crate::series::{OpenScope, SeriesEntry, SeriesName};
use crate::store::{Store, StoreError, StoreResult};

/// Pools that are read from the store or the server at once.
pub(super) const PAGE: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    #[error("series {0:?} has no pool")]
    NoPool(Box<str>),
    #[error("series {series:?} has {max} pools, the limit (lists_max)")]
    TooMany { series: Box<str>, max: usize },
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error("scope {0} has a value that the key of a pool cannot hold")]
    Key(ScopeKey),
    /// The client is connected to another Redis server than this process.
    #[error(
        "the client is connected to another Redis server than Bates, or Bates cannot reach its server now"
    )]
    OtherServer,
    #[error("the pool of scope {0} cannot be filled now: {1}")]
    Fill(ScopeKey, FillError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

type PoolResult<T> = Result<T, PoolError>;

impl PoolError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NoPool(_) | Self::Key(_) => ErrorCode::NO_POOL,
            Self::TooMany { .. } => ErrorCode::TOO_MANY_POOLS,
            Self::Scope(refused) => refused.code(),
            Self::OtherServer => ErrorCode::POOL_ELSEWHERE,
            Self::Fill(_, error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    pub scope_id: ScopeId,
    pub key: Box<str>,
    /// The length of the list when this process last read it; `None` if it never did.
    pub level: Option<u64>,
    pub epoch: u64,
}

impl<S: Store> Machine<S> {
    /// The id of the store, which the markers of its shared pools hold.
    pub fn identity(&self) -> Uuid {
        self.store().identity()
    }

    /// Gives a series pools, in the place of those that it had. A filler that runs keeps the former ones.
    pub fn set_pools(&self, series: SeriesName, pools: Arc<PoolSet>) {
        self.pools.write().insert(series, pools);
    }

    pub fn remove_pools(&self, series: &SeriesName) {
        self.pools.write().remove(series);
    }

    pub fn pool_set(&self, series: &SeriesName) -> Option<Arc<PoolSet>> {
        self.pools.read().get(series).cloned()
    }

    /// Gives a scope a pool, which the filler keeps full from now on.
    pub async fn request_pool(
        &self,
        of: &SeriesEntry,
        params: ScopeParams<'_>,
        actor: Actor<'_>,
    ) -> PoolResult<PoolStatus> {
        let (pools, PoolId { scope_id, key }) = self.find_pool(of, params)?;
        self.check_list_count(&pools, &scope_id).await?;
        let operation = self.operation(actor, OperationKind::PoolRequested, Some(&scope_id.series));
        let operation = operation.on(scope_id.scope.as_str()).between(None, Some(&key));
        let Pool { epoch, .. } = self.store().pool(scope_id.clone(), Some(operation)).await?;
        pools.wake_filler.notify_one();
        let level = pools.levels.lock().get(&scope_id.scope).copied();
        Ok(PoolStatus { scope_id, key, level, epoch })
    }

    /// The pools of a series, or of all series, that were ever requested.
    pub async fn pool_statuses(&self, only: Option<&SeriesName>) -> PoolResult<Vec<PoolStatus>> {
        let mut found = Vec::new();
        let is_wanted = |series: &SeriesName| only.is_none_or(|only| only == series);
        let pools: Vec<(SeriesName, Arc<PoolSet>)> = {
            let pools = self.pools.read();
            let wanted = pools.iter().filter(|(series, _)| is_wanted(series));
            wanted.map(|(series, pools)| (series.clone(), pools.clone())).collect()
        };
        for (series, pools) in &pools {
            let read = |after| self.store().pools(series.clone(), after, PAGE);
            each_page(read, |scope, Pool { epoch, .. }| {
                let level = pools.levels.lock().get(&scope).copied();
                let key = pools.key(&scope);
                let scope_id = ScopeId { series: series.clone(), scope };
                found.extend(key.map(|key| PoolStatus { scope_id, key, level, epoch }));
            })
            .await?;
        }
        found.sort_unstable_by(|one, other| one.scope_id.cmp(&other.scope_id));
        match only {
            Some(series) if self.pool_set(series).is_none() => Err(PoolError::NoPool(series.as_str().into())),
            _ => Ok(found),
        }
    }

    /// The key and epoch of a pool, for a client that is connected to this Redis server. If the store does not know the
    /// server yet, this process checks the list first, and renews the pool if the server lost it.
    pub async fn attach_client(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        server: &ServerIdentity,
    ) -> PoolResult<(Box<str>, u64)> {
        let (pools, PoolId { scope_id, key }) = self.find_pool(entry, params)?;
        self.check_list_count(&pools, &scope_id).await?;
        let is_known = |pool: &Pool| pool.server.as_ref() == Some(server);
        let mut pool = self.store().pool(scope_id.clone(), None).await?;
        if !is_known(&pool) {
            // This process trusts the server that it is connected to, not the claim of the client.
            let status = self.fill_or_renew(&pools, entry, &scope_id.scope, None).await;
            status.map_err(|error| PoolError::Fill(scope_id.scope.clone(), error))?;
            pool = self.store().pool(scope_id, None).await?;
        }
        pools.wake_filler.notify_one();
        if is_known(&pool) { Ok((key, pool.epoch)) } else { Err(PoolError::OtherServer) }
    }

    /// The pools of a series in the store: all that it ever had.
    pub async fn stored_pools(
        &self,
        entry: &SeriesEntry,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> StoreResult<Vec<(ScopeKey, Pool)>> {
        self.store().pools(entry.series.name().clone(), after, limit).await
    }

    /// Fills the pool of a scope if it is low, and renews it if its server lost it. One filler at a time works on a pool.
    pub async fn fill_pool(
        &self,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        progress: &(dyn Fn(u64) + Sync),
    ) -> FillResult {
        let Some(pools) = self.pool_set(entry.series.name()) else { return Ok(FillOutcome::Skipped) };
        self.fill_or_renew(&pools, entry, scope, Some(progress)).await
    }

    /// Without `progress`, only renews the pool. Skips a pool on which this process works already.
    pub(super) async fn fill_or_renew(
        &self,
        pools: &PoolSet,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        progress: Option<Progress<'_>>,
    ) -> FillResult {
        let parameters: Vec<(&str, &str)> = scope.parts().0.collect();
        let open = self.open_scope(entry, (&*parameters).into());
        let (Ok(open), Some(key)) = (open, pools.key(scope)) else { return Ok(FillOutcome::Skipped) };
        let open = OpenScope { scope_id: entry.series.scope_id(scope), ..open };
        if !pools.filling.lock().insert(scope.clone()) {
            return Ok(FillOutcome::Skipped);
        }
        let _guard = FillGuard { pools, scope };
        let filling = PoolFill { store: self.store(), pools, runtime: &*self.runtime, open, key };
        let filled = filling.run(progress).await;
        pools.count_outcome(&filled);
        filled
    }

    /// Empties the list of a scope's pool, so that no program takes numbers that must not be issued. Returns the first
    /// position past those pushed in its epoch: programs may have taken them. The next filling renews the pool.
    pub async fn empty_pool(&self, entry: &SeriesEntry, scope: &ScopeKey) -> Result<Option<u64>, FillError> {
        let Some(pools) = self.pool_set(entry.series.name()) else { return Ok(None) };
        pools.empty_list(scope).await
    }

    /// Refuses another list for a series that has as many as its operator allows.
    async fn check_list_count(&self, pools: &PoolSet, scope_id: &ScopeId) -> PoolResult<()> {
        let (max, series) = (pools.settings.lists_max, &scope_id.series);
        let stored = self.store().pools(series.clone(), None, max).await?;
        let is_new = || stored.iter().all(|(scope, _)| *scope != scope_id.scope);
        if stored.len() >= max && is_new() {
            return Err(PoolError::TooMany { series: series.as_str().into(), max });
        }
        Ok(())
    }

    pub(super) fn find_pool(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
    ) -> PoolResult<(Arc<PoolSet>, PoolId)> {
        let series = entry.series.name();
        let pools = self.pool_set(series).ok_or_else(|| PoolError::NoPool(series.as_str().into()))?;
        let scope_id = self.open_scope(entry, params)?.scope_id;
        let key = pools.key(&scope_id.scope).ok_or_else(|| PoolError::Key(scope_id.scope.clone()))?;
        Ok((pools, PoolId { scope_id, key }))
    }
}

pub(super) struct PoolId {
    pub(super) scope_id: ScopeId,
    key: Box<str>,
}

/// Marks a scope as being filled until it is dropped, even if the filling is cancelled.
struct FillGuard<'a> {
    pools: &'a PoolSet,
    scope: &'a ScopeKey,
}

impl Drop for FillGuard<'_> {
    fn drop(&mut self) {
        self.pools.filling.lock().remove(self.scope);
    }
}

//! The shared pools of a machine.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::fill::{Filling, Progress};
use super::{FillError, Filled, KeptPools, Pool, Server};
use crate::code::Code;
use crate::machine::Machine;
use crate::scope::{Place, ScopeKey, ScopeName, ScopeRefused, each_page};
use crate::series::{Entry, OpenScope, SeriesName};
use crate::store::{Store, StoreError};

const PAGE: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolRefused {
    #[error("series {0:?} has no pool")]
    None(Box<str>),
    #[error(transparent)]
    Scope(#[from] ScopeRefused),
    #[error("scope {0} holds what the key of a pool cannot")]
    Key(ScopeKey),
    /// The caller sees another server.
    #[error("the pool is on another server than the one that you see, or that one cannot be asked now")]
    Elsewhere,
    #[error("the pool of scope {0} cannot be filled now: {1}")]
    Fill(ScopeKey, FillError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PoolRefused {
    pub const fn code(&self) -> Code {
        match self {
            Self::None(_) | Self::Key(_) => Code::NO_POOL,
            Self::Scope(refused) => refused.code(),
            Self::Elsewhere => Code::POOL_ELSEWHERE,
            Self::Fill(_, error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLook {
    pub place: Place,
    pub key: Box<str>,
    /// When this process last looked; `None` if it never did.
    pub level: Option<u64>,
    pub epoch: u64,
}

impl<S: Store> Machine<S> {
    /// The store of the machine. The markers of its shared pools name it.
    pub fn identity(&self) -> Uuid {
        self.store().identity()
    }

    /// Only the first call counts.
    pub fn know_pools(&self, pools: HashMap<SeriesName, Arc<KeptPools>>) {
        let _ = self.pools.set(pools);
    }

    pub fn kept(&self, series: &SeriesName) -> Option<&Arc<KeptPools>> {
        self.pools.get()?.get(series)
    }

    /// Keeps a pool for a scope from now on.
    pub async fn ask_for_pool(&self, entry: &Entry, name: ScopeName<'_>) -> Result<PoolLook, PoolRefused> {
        let (kept, Named { place, key }) = self.pool_of(entry, name)?;
        let Pool { epoch, .. } = self.store().pool(place.clone()).await?;
        kept.asked.notify_one();
        let level = kept.levels.lock().get(&place.scope).copied();
        Ok(PoolLook { place, key, level, epoch })
    }

    /// The pools of a series, or of all, that were ever asked for.
    pub async fn look_at_pools(&self, only: Option<&SeriesName>) -> Result<Vec<PoolLook>, PoolRefused> {
        let mut found = Vec::new();
        let kept = self.pools.get().into_iter().flatten();
        for (series, kept) in kept.filter(|(series, _)| only.is_none_or(|only| only == *series)) {
            let read = |after| self.store().pools(series.clone(), after, PAGE);
            each_page(read, |scope, Pool { epoch, .. }| {
                let level = kept.levels.lock().get(&scope).copied();
                let key = kept.key(&scope);
                let place = Place { series: series.clone(), scope };
                found.extend(key.map(|key| PoolLook { place, key, level, epoch }));
            })
            .await?;
        }
        found.sort_unstable_by(|one, other| one.place.cmp(&other.place));
        match only {
            Some(series) if self.kept(series).is_none() => Err(PoolRefused::None(series.as_str().into())),
            _ => Ok(found),
        }
    }

    /// The key and epoch of a pool, for a client that sees this server. If the server is not known, this process looks
    /// at it first, and renews the pool if the server forgot it.
    pub async fn attach(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        server: &Server,
    ) -> Result<(Box<str>, u64), PoolRefused> {
        let (kept, Named { place, key }) = self.pool_of(entry, name)?;
        let is_known = |pool: &Pool| pool.server.as_ref() == Some(server);
        let mut pool = self.store().pool(place.clone()).await?;
        if !is_known(&pool) {
            // What this process sees decides, not what somebody says.
            let looked = self.attend(entry, &place.scope, None).await;
            looked.map_err(|error| PoolRefused::Fill(place.scope.clone(), error))?;
            pool = self.store().pool(place).await?;
        }
        kept.asked.notify_one();
        if is_known(&pool) { Ok((key, pool.epoch)) } else { Err(PoolRefused::Elsewhere) }
    }

    pub(crate) fn pool_scope(&self, entry: &Entry, parameters: &[(&str, &str)]) -> Option<ScopeKey> {
        self.pool_of(entry, parameters.into()).ok().map(|(_, named)| named.place.scope)
    }

    /// The pools of a series that were ever asked for.
    pub async fn pools_of(
        &self,
        entry: &Entry,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Pool)>, StoreError> {
        self.store().pools(entry.series.name().clone(), after, limit).await
    }

    /// Fills the pool of a scope, if it is low or its server forgot it. A pool is filled once at a time.
    pub async fn fill(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Filled, FillError> {
        self.attend(entry, scope, Some(progress)).await
    }

    /// Works on the pool of a scope, unless this process does so already.
    async fn attend(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        progress: Option<Progress<'_>>,
    ) -> Result<Filled, FillError> {
        let Some(kept) = self.kept(entry.series.name()) else { return Ok(Filled::Elsewhere) };
        let parameters: Vec<(&str, &str)> = scope.parts().0.collect();
        let open = self.open_scope(entry, (&*parameters).into());
        let (Ok(open), Some(key)) = (open, kept.key(scope)) else { return Ok(Filled::Elsewhere) };
        let open = OpenScope { place: entry.series.place(scope), ..open };
        if !kept.under_way.lock().insert(scope.clone()) {
            return Ok(Filled::Elsewhere);
        }
        let _ended = UnderWay { kept, scope };
        let filling = Filling { store: self.store(), kept, runtime: &*self.runtime, open, key };
        let filled = filling.run(progress).await;
        kept.count(&filled);
        filled
    }

    /// Empties the list of a scope's pool, so that no program takes what must not be issued, and returns the first
    /// position past all that were ever pushed into it: those may have been taken. The next filling renews it.
    pub async fn empty_pool(&self, entry: &Entry, scope: &ScopeKey) -> Result<Option<u64>, FillError> {
        let Some(kept) = self.kept(entry.series.name()) else { return Ok(None) };
        let Some(key) = kept.key(scope) else { return Ok(None) };
        let looked = kept.list.look(std::slice::from_ref(&key)).await.map_err(FillError::Server)?;
        let Some(list) = looked.lists.first().filter(|list| !list.is_foreign) else { return Ok(None) };
        // A list without a marker is not ours.
        if let Some(epoch) = list.epoch {
            kept.list.discard(&[(key, epoch)], &looked.server).await.map_err(FillError::Server)?;
        }
        Ok(list.pushed_to)
    }

    fn pool_of(&self, entry: &Entry, name: ScopeName<'_>) -> Result<(&Arc<KeptPools>, Named), PoolRefused> {
        let series = entry.series.name();
        let kept = self.kept(series).ok_or_else(|| PoolRefused::None(series.as_str().into()))?;
        let place = self.open_scope(entry, name)?.place;
        let key = kept.key(&place.scope).ok_or_else(|| PoolRefused::Key(place.scope.clone()))?;
        Ok((kept, Named { place, key }))
    }
}

struct Named {
    place: Place,
    key: Box<str>,
}

/// Counts a filling as long as it lives, also if it is dropped.
struct UnderWay<'a> {
    kept: &'a KeptPools,
    scope: &'a ScopeKey,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.kept.under_way.lock().remove(self.scope);
    }
}

//! Shared pools of a machine: which there are, and one of them filled.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::{FillError, Filled, Filling, KeptPools, Pool, Server};
use crate::code::Code;
use crate::machine::Machine;
use crate::scope::{Place, ScopeKey, ScopeName, ScopeRefused};
use crate::series::{Entry, SeriesName};
use crate::store::{Store, StoreError};

/// Pools that are read together.
const PAGE: usize = 1_000;

/// A pool that was asked for and is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolRefused {
    /// The configuration gives the series no pool.
    #[error("series {0:?} has no pool")]
    None(Box<str>),
    /// The scope is none of the series.
    #[error(transparent)]
    Scope(#[from] ScopeRefused),
    /// The scope makes no key.
    #[error("scope {0} holds what the key of a pool cannot")]
    Key(ScopeKey),
    /// Whoever asks sees another server.
    #[error("the pool is on another server than the one that you see, or that one cannot be asked now")]
    Elsewhere,
    /// It could not be filled.
    #[error("the pool of scope {0} cannot be filled now: {1}")]
    Fill(ScopeKey, FillError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PoolRefused {
    /// The stable code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::None(_) | Self::Key(_) => Code::NO_POOL,
            Self::Scope(refused) => refused.code(),
            Self::Elsewhere => Code::POOL_ELSEWHERE,
            Self::Fill(_, FillError::TooManyScopes(_)) => Code::TOO_MANY_SCOPES,
            Self::Fill(..) => Code::POOL_UNAVAILABLE,
            Self::Store(error) if error.is_poisoned() => Code::STORE_POISONED,
            Self::Store(_) => Code::STORE_UNAVAILABLE,
        }
    }
}

/// A pool, for whoever looks on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLook {
    /// Where its numbers are from.
    pub place: Place,
    /// The key of its list.
    pub key: Box<str>,
    /// Numbers in it when this process last looked; `None` if it never did.
    pub level: Option<u64>,
    /// Its epoch.
    pub epoch: u64,
}

impl<S: Store> Machine<S> {
    /// Which store the machine issues from. The markers of its shared pools name it.
    pub fn identity(&self) -> Uuid {
        self.store().identity()
    }

    /// From now on these series have shared pools. Only the first call counts.
    pub fn know_pools(&self, pools: HashMap<SeriesName, Arc<KeptPools>>) {
        let _ = self.pools.set(pools);
    }

    /// The pools of a series.
    pub fn kept(&self, series: &SeriesName) -> Option<&Arc<KeptPools>> {
        self.pools.get()?.get(series)
    }
}

impl<S: Store> Machine<S> {
    /// Has a pool for a scope from now on.
    pub async fn ask_for_pool(&self, entry: &Entry, name: ScopeName<'_>) -> Result<PoolLook, PoolRefused> {
        let (kept, scope, key) = self.pool_of(entry, name)?;
        let place = place(entry, &scope);
        let Pool { epoch, .. } = self.store().pool(place.clone()).await?;
        kept.asked.notify_one();
        let level = kept.levels.lock().get(&scope).copied();
        Ok(PoolLook { place, key, level, epoch })
    }

    /// The pools of a series, or of all, that were ever asked for.
    pub async fn look_at_pools(&self, only: Option<&SeriesName>) -> Result<Vec<PoolLook>, PoolRefused> {
        let (mut found, all) = (Vec::new(), self.pools.get());
        let kept = all.into_iter().flatten().filter(|(series, _)| only.is_none_or(|only| only == *series));
        for (series, kept) in kept {
            let mut after = None;
            loop {
                let page = self.store().pools(series.clone(), after, PAGE).await?;
                let Some((last, _)) = page.last() else { break };
                after = Some(last.clone());
                let levels = kept.levels.lock();
                found.extend(page.into_iter().filter_map(|(scope, Pool { epoch, .. })| {
                    let (key, level) = (kept.key(&scope)?, levels.get(&scope).copied());
                    Some(PoolLook { place: Place { series: series.clone(), scope }, key, level, epoch })
                }));
            }
        }
        found.sort_unstable_by(|one, other| one.place.cmp(&other.place));
        match only {
            Some(series) if found.is_empty() && self.kept(series).is_none() => {
                Err(PoolRefused::None(series.as_str().into()))
            }
            _ => Ok(found),
        }
    }

    /// The epoch of a pool, for somebody who is about to take from it and sees this server: one that is not known is
    /// looked at first, and the pool begun anew if it forgot.
    pub async fn attach(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        server: &Server,
    ) -> Result<(Box<str>, u64), PoolRefused> {
        let (kept, scope, key) = self.pool_of(entry, name)?;
        let is_known = |pool: &Pool| pool.server.as_ref() == Some(server);
        let mut pool = self.store().pool(place(entry, &scope)).await?;
        if !is_known(&pool) {
            // What this process sees decides, not what somebody says.
            let looked = self.attend(entry, &scope, async |filling| filling.look_after().await).await;
            looked.map_err(|error| PoolRefused::Fill(scope.clone(), error))?;
            pool = self.store().pool(place(entry, &scope)).await?;
        }
        kept.asked.notify_one();
        if is_known(&pool) { Ok((key, pool.epoch)) } else { Err(PoolRefused::Elsewhere) }
    }

    /// The scope of these parameters, if it can have a pool.
    pub(crate) fn pool_scope(&self, entry: &Entry, parameters: &[(&str, &str)]) -> Option<ScopeKey> {
        self.pool_of(entry, parameters.into()).ok().map(|(_, scope, _)| scope)
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
        let (kept, counted) = (self.kept(entry.series.name()), AtomicU64::new(0));
        let count = |pushed: u64| {
            if let Some(kept) = kept {
                kept.count_pushed(pushed - counted.swap(pushed, Ordering::Relaxed));
            }
            progress(pushed);
        };
        self.attend(entry, scope, async |filling| filling.run(&count).await).await
    }

    /// Does something with the pool of a scope, unless this process is doing so already.
    async fn attend(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        work: impl AsyncFnOnce(Filling<'_, S>) -> Result<Filled, FillError>,
    ) -> Result<Filled, FillError> {
        let Some(kept) = self.kept(entry.series.name()) else { return Ok(Filled::Elsewhere) };
        let (parameters, _) = scope.parts();
        let parameters: Vec<(&str, &str)> = parameters.collect();
        let ready = entry.scope((&*parameters).into(), || self.runtime.now());
        let (Ok((ready, _)), Some(key)) = (ready, kept.key(scope)) else { return Ok(Filled::Elsewhere) };
        if !kept.under_way.lock().insert(scope.clone()) {
            return Ok(Filled::Elsewhere);
        }
        let _ended = UnderWay { kept, scope };
        let filling = Filling {
            store: self.store(),
            list: &*kept.list,
            runtime: &*self.runtime,
            settings: &kept.settings,
            entry,
            scope: ready,
            place: place(entry, scope),
            key,
        };
        let filled = work(filling).await;
        kept.count(&filled);
        filled
    }

    /// Empties the list of a scope's pool, so that nobody takes from it what must not be issued, and answers the first
    /// position past all that were ever pushed into it: those may have been taken. It is begun anew when it is filled
    /// next. `None` if the scope has no pool.
    pub async fn empty_pool(&self, entry: &Entry, scope: &ScopeKey) -> Result<Option<u64>, FillError> {
        let Some(kept) = self.kept(entry.series.name()) else { return Ok(None) };
        let Some(key) = kept.key(scope) else { return Ok(None) };
        let keys = [key];
        let looked = kept.list.look(&keys).await.map_err(FillError::Server)?;
        let Some(list) = looked.lists.first() else { return Ok(None) };
        let [key] = keys;
        if list.is_foreign {
            return Ok(None);
        }
        // What has no marker is no list of ours.
        if let Some(epoch) = list.epoch {
            kept.list.discard(&[(key, epoch)], &looked.server).await.map_err(FillError::Server)?;
        }
        Ok(list.pushed_to)
    }

    fn pool_of(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
    ) -> Result<(&Arc<KeptPools>, ScopeKey, Box<str>), PoolRefused> {
        let series = entry.series.name();
        let kept = self.kept(series).ok_or_else(|| PoolRefused::None(series.as_str().into()))?;
        let (_, scope) = entry.scope(name, || self.runtime.now())?;
        let key = kept.key(&scope).ok_or_else(|| PoolRefused::Key(scope.clone()))?;
        Ok((kept, scope, key))
    }
}

fn place(entry: &Entry, scope: &ScopeKey) -> Place {
    Place { series: entry.series.name().clone(), scope: scope.clone() }
}

/// A filling counts as long as it lives, also if it is dropped.
struct UnderWay<'a> {
    kept: &'a KeptPools,
    scope: &'a ScopeKey,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.kept.under_way.lock().remove(self.scope);
    }
}

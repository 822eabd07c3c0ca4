//! The pools that a filler watches.

use std::collections::BTreeMap;
use std::time::Duration;

use super::machine::PAGE;
use super::{Filler, ListStatus, Pool, ScopeMatcher, ServerIdentity};
use crate::scope::{ScopeKey, each_page};
use crate::store::{Store, StoreResult};

#[derive(Default)]
pub(super) struct WatchedPool {
    pub(super) key: Box<str>,
    /// As last read from the store.
    pub(super) pool: Pool,
    pub(super) level: u64,
    /// The epoch of the list when the list was last read.
    pub(super) seen_epoch: u64,
    /// The first position past all pushed ones then.
    pub(super) pushed_to: u64,
    /// No filling starts earlier; [`Duration::MAX`] while one runs.
    pub(super) not_before: Duration,
    /// Whether it was reported that it cannot be filled.
    pub(super) failure_reported: bool,
}

impl WatchedPool {
    /// Whether the list is the one that the epoch in the store stands for.
    pub(super) fn is_trusted(&self, server: &ServerIdentity, list: &ListStatus) -> bool {
        self.pool.server.as_ref() == Some(server)
            && list.epoch == Some(self.pool.epoch)
            && !list.is_of_other_store
    }
}

pub(super) type WatchedPools = BTreeMap<ScopeKey, WatchedPool>;

impl<S: Store> Filler<S> {
    /// Finds the scopes that have a pool: by a request, or by the configuration, as one scope or with `*`.
    pub(super) async fn read_scopes(&self, all: &mut WatchedPools) -> StoreResult<()> {
        let name = self.entry.series().name();
        self.read_pools(all).await?;
        for parameters in self.pools.settings.scopes.iter().filter_map(ScopeMatcher::single_scope) {
            // Only valid scopes come here: the check of the configuration refuses others.
            let Ok((_, pool)) = self.machine.find_pool(&self.entry, (&*parameters).into()) else { continue };
            self.watch(all, pool.scope_id.scope, None);
        }
        if self.pools.settings.scopes.iter().all(|matching| matching.single_scope().is_some()) {
            return Ok(());
        }
        let read = |after| self.machine.scopes(name.clone(), after, PAGE);
        each_page(read, |scope, _| {
            if self.pools.settings.scopes.iter().any(|matching| matching.matches(&scope)) {
                self.watch(all, scope, None);
            }
        })
        .await
    }

    pub(super) async fn read_pools(&self, all: &mut WatchedPools) -> StoreResult<()> {
        let read = |after| self.machine.stored_pools(&self.entry, after, PAGE);
        each_page(read, |scope, pool| self.watch(all, scope, Some(pool))).await
    }

    fn watch(&self, all: &mut WatchedPools, scope: ScopeKey, pool: Option<Pool>) {
        if let Some(watched) = all.get_mut(&scope) {
            watched.pool = pool.unwrap_or_else(|| watched.pool.clone());
        } else if all.len() < self.pools.settings.lists_max
            && let Some(key) = self.pools.key(&scope)
        {
            all.insert(scope, WatchedPool { key, pool: pool.unwrap_or_default(), ..WatchedPool::default() });
        }
    }
}

//! The pools that a filler watches.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Filler, ListLook, Pool, ScopeMatch, Server};
use crate::scope::{ScopeKey, each_page};
use crate::store::{Store, StoreError};

const POOLS_MAX: usize = 10_000;

const PAGE: usize = 1_000;

#[derive(Default)]
pub(super) struct Watched {
    pub(super) key: Box<str>,
    /// As the store knew it.
    pub(super) pool: Pool,
    pub(super) level: u64,
    /// The epoch in which its list was last seen.
    pub(super) seen_epoch: u64,
    /// How far the list was pushed then.
    pub(super) pushed_to: u64,
    pub(super) not_before: Duration,
    /// Whether it was reported that it cannot be filled.
    pub(super) is_told: bool,
}

impl Watched {
    pub(super) fn is_trusted(&self, server: &Server, list: &ListLook) -> bool {
        self.pool.server.as_ref() == Some(server) && list.epoch == Some(self.pool.epoch) && !list.is_foreign
    }
}

pub(super) type All = BTreeMap<ScopeKey, Watched>;

impl<S: Store> Filler<S> {
    /// The scopes that have a pool: asked for, listed, or matching.
    pub(super) async fn read_scopes(&self, all: &mut All) -> Result<(), StoreError> {
        let name = self.entry.series().name();
        self.read_pools(all).await?;
        for parameters in self.kept.settings.scopes.iter().filter_map(ScopeMatch::one) {
            // The configuration check refuses parameters that are no scope.
            let Some(scope) = self.machine.pool_scope(&self.entry, &parameters) else { continue };
            self.watch(all, scope, None);
        }
        if self.kept.settings.scopes.iter().all(|matching| matching.one().is_some()) {
            return Ok(());
        }
        let read = |after| self.machine.scopes(name.clone(), after, PAGE);
        each_page(read, |scope, _| {
            if self.kept.settings.scopes.iter().any(|matching| matching.matches(&scope)) {
                self.watch(all, scope, None);
            }
        })
        .await
    }

    pub(super) async fn read_pools(&self, all: &mut All) -> Result<(), StoreError> {
        let read = |after| self.machine.pools_of(&self.entry, after, PAGE);
        each_page(read, |scope, pool| self.watch(all, scope, Some(pool))).await
    }

    fn watch(&self, all: &mut All, scope: ScopeKey, pool: Option<Pool>) {
        if let Some(watched) = all.get_mut(&scope) {
            watched.pool = pool.unwrap_or_else(|| watched.pool.clone());
        } else if all.len() < POOLS_MAX
            && let Some(key) = self.kept.key(&scope)
        {
            all.insert(scope, Watched { key, pool: pool.unwrap_or_default(), ..Watched::default() });
        }
    }
}

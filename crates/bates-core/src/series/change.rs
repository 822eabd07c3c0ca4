//! Series made, changed and retired at run time.
//!
//! A retired series keeps its pin and its cursors, so a later one of its name is the same series or is refused. Before
//! a changed series is published, everything that the old entry holds in memory is sealed and given back, and nothing
//! new begins under it: a call that found it waits for the entry in its place, or is refused if there will be none. An
//! ordered series that numbers documents holds nothing in memory, and neither does the entry in its place: a call that
//! found the old one may still be granted a number.

use bates_pattern::Position;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{
    Caching, DescriptionChange, MachineError, Promise, PromiseChange, Registry, Series, SeriesEntry,
    SeriesName, SeriesOrigin, SeriesSpec, open,
};
use crate::dispenser::ReleaseReport;
use crate::error::IssueError;
use crate::machine::{Machine, NextError};
use crate::scope::{ScopeKey, ScopeParams};
use crate::store::{Store, StoreResult};

/// Max series. Each is searched when an identifier is traced.
pub const SERIES_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is new, or was retired and continues.
    Created,
    /// It existed with the same description.
    Existed,
}

impl<S: Store> Machine<S> {
    /// Makes a series at run time. Its cursors continue if a series of its name existed before.
    pub async fn create_series(&self, spec: SeriesSpec) -> Result<CreateOutcome, MachineError> {
        let mut changing = self.series_sync.lock().await;
        self.sync_series_locked(&mut changing).await?;
        let registry = self.registry();
        if let Some(entry) = registry.get(spec.name.as_str()) {
            return match entry.origin {
                SeriesOrigin::File => Err(MachineError::InFile(spec.name)),
                SeriesOrigin::Api if entry.spec.description == spec.description => Ok(CreateOutcome::Existed),
                SeriesOrigin::Api => Err(MachineError::Exists(spec.name)),
            };
        }
        if registry.len() >= SERIES_MAX {
            return Err(MachineError::TooMany(SERIES_MAX));
        }
        let (name, description) = (spec.name.clone(), spec.description.clone());
        match self.prepare(spec, None).await {
            Ok(_publication) => Ok(CreateOutcome::Created),
            Err(MachineError::ChangedMeanwhile(_)) => {
                self.sync_series_locked(&mut changing).await?;
                match self.series(name.as_str()) {
                    Some(entry) if entry.spec.description == description => Ok(CreateOutcome::Existed),
                    _ => Err(MachineError::Exists(name)),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Changes limits, rejection rules, audit or promise of a series made at run time. `change` gets the current
    /// description, which no other call changes meanwhile.
    pub async fn change_series<E: From<MachineError>>(
        &self,
        name: &SeriesName,
        change: impl FnOnce(&SeriesSpec) -> Result<SeriesSpec, E>,
    ) -> Result<(), E> {
        let mut changing = self.series_sync.lock().await;
        self.sync_series_locked(&mut changing).await?;
        let entry = self.changeable_series(name)?;
        let spec = change(&entry.spec)?;
        if !entry.spec.has_same_identity(&spec) {
            return Err(MachineError::Exists(spec.name).into());
        }
        let (from, to) = (entry.spec.promise, spec.promise);
        if from != to {
            spec.check()?;
            let (before, after) = (entry.spec.description.clone(), spec.description.clone());
            self.pin_promise(name, PromiseChange { from, to }, Some(DescriptionChange { before, after }))
                .await?;
        } else if self.store().is_shared() && to != Promise::Unique {
            self.recall_before_change(name).await?;
        }
        let publication = self.prepare(spec, Some(entry.spec.description.clone())).await?;
        // Positions in memory have the old limits and come back with the new ones. Callers wait for those meanwhile.
        self.dispenser.retire(&entry.series).await;
        drop(publication);
        Ok(())
    }

    /// Retires a series made at run time. On return this node issues nothing in its name; other nodes do until they
    /// follow. Its pin and its cursors stay for ever.
    pub async fn retire_series(&self, name: &SeriesName) -> Result<ReleaseReport, MachineError> {
        let mut changing = self.series_sync.lock().await;
        self.sync_series_locked(&mut changing).await?;
        let entry = self.changeable_series(name)?;
        let before = Some(entry.spec.description.clone());
        if !self.store().describe(name.clone(), before, None).await? {
            return Err(MachineError::ChangedMeanwhile(name.clone()));
        }
        let registry = self.registry().without(name);
        self.keep_caching(&entry);
        self.registry.store(registry.into());
        Ok(self.dispenser.retire(&entry.series).await)
    }

    /// Raises the cursor of a scope to `floor`, so that nothing below it is ever issued again, and returns the cursor;
    /// a higher one stays. No process may have issued from the scope or issue meanwhile: its leases would lie below the
    /// floor.
    pub async fn raise_floor(
        &self,
        entry: &SeriesEntry,
        name: ScopeParams<'_>,
        floor: u64,
    ) -> Result<u64, NextError> {
        let open = self.open_scope(entry, name)?;
        Ok(self.raise_scope_floor(entry, open.key(), floor).await?)
    }

    pub async fn raise_scope_floor(
        &self,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        floor: u64,
    ) -> Result<u64, IssueError> {
        let scope_id = entry.series.scope_id(scope);
        // A new scope must not begin before the series does.
        let floor = floor.clamp(entry.series.start().value(), entry.series.end());
        let raised = self.store().raise_floor(scope_id.clone(), floor).await;
        Ok(raised.map_err(IssueError::from_store(&scope_id))?.next)
    }

    /// Adopts positions of a scope, so that their numbers are never issued. Returns how many were granted before. No
    /// process may have issued from the scope or issue meanwhile.
    pub async fn adopt_positions(
        &self,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        positions: Vec<Position>,
    ) -> Result<u64, IssueError> {
        let scope_id = entry.series.scope_id(scope);
        let passed = self.store().adopt_positions(scope_id.clone(), positions).await;
        passed.map_err(IssueError::from_store(&scope_id))
    }

    /// Ascending, from `from` on, at most `limit`.
    pub async fn adopted_positions(
        &self,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<Position>> {
        self.store().adopted_positions(entry.series.scope_id(scope), from, limit).await
    }

    /// Opens a series and records its description. Dropping the publication publishes it.
    async fn prepare(
        &self,
        spec: SeriesSpec,
        before: Option<Box<str>>,
    ) -> Result<Publication<'_>, MachineError> {
        let registry = self.registry();
        registry.check_key_is_free(&spec)?;
        let (name, description) = (spec.name.clone(), spec.description.clone());
        let store = self.dispenser.store();
        let entry =
            open::open_series(store, spec, SeriesOrigin::Api, self.caching_of(&registry, &name)).await?;
        if !store.describe(name.clone(), before, Some(description)).await? {
            return Err(MachineError::ChangedMeanwhile(name));
        }
        Ok(Publication { next: registry.with(entry).into(), current: &self.registry })
    }

    /// The entry in the place of a retired one, once the change is over.
    pub(crate) async fn replacement_of(&self, retired: &Series) -> Option<Arc<SeriesEntry>> {
        let current = || self.series(retired.name().as_str()).filter(|entry| !entry.series.is(retired));
        if let Some(entry) = current() {
            return Some(entry);
        }
        // Another node may have changed it. If the store cannot be asked, this node knows as much as it can.
        let _ = Box::pin(self.sync_series()).await;
        drop(self.series_sync.lock().await);
        current()
    }

    /// The memory of the ordered series of a name, shared by a series in its place.
    pub(crate) fn caching_of(&self, registry: &Registry, name: &SeriesName) -> Arc<Caching> {
        let current = registry.get(name.as_str()).filter(|entry| entry.series.promise() == Promise::Ordered);
        match current {
            Some(entry) => entry.series.caching().clone(),
            None => self.retired_caching.lock().get(name).cloned().unwrap_or_default(),
        }
    }

    /// Keeps the memory of a retired ordered series for a later one of its name.
    fn keep_caching(&self, entry: &SeriesEntry) {
        if entry.series.promise() == Promise::Ordered {
            let (name, memory) = (entry.series.name().clone(), entry.series.caching().clone());
            self.retired_caching.lock().insert(name, memory);
        }
    }

    fn changeable_series(&self, name: &SeriesName) -> Result<Arc<SeriesEntry>, MachineError> {
        match self.registry().get(name.as_str()) {
            None => Err(MachineError::Unknown(name.clone())),
            Some(entry) if entry.origin == SeriesOrigin::File => Err(MachineError::InFile(name.clone())),
            Some(entry) => Ok(entry.clone()),
        }
    }
}

/// Publishes the series when it is dropped, also if the call that changes them is cancelled.
///
/// Invariant: no retired entry stays in the registry: callers would wait for a change that is over.
pub(crate) struct Publication<'m> {
    pub(crate) next: Arc<Registry>,
    pub(crate) current: &'m ArcSwap<Registry>,
}

impl Drop for Publication<'_> {
    fn drop(&mut self) {
        self.current.store(self.next.clone());
    }
}

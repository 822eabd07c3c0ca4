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
    Entry, MachineError, Memory, Origin, Promise, PromiseChange, Redescription, Registry, Series, SeriesName,
    SeriesSpec, open,
};
use crate::dispenser::Closed;
use crate::error::IssueError;
use crate::machine::{Machine, NextError};
use crate::scope::{ScopeKey, ScopeName};
use crate::store::{Store, StoreError};

/// Max series. Each is searched when an identifier is traced.
pub const SERIES_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is new, or was retired and continues.
    New,
    /// It existed with the same description.
    Already,
}

impl<S: Store> Machine<S> {
    /// Makes a series at run time. Its cursors continue if a series of its name existed before.
    pub async fn create(&self, spec: SeriesSpec) -> Result<Made, MachineError> {
        let mut changing = self.changing.lock().await;
        self.catch_up(&mut changing).await?;
        let registry = self.registry();
        if let Some(entry) = registry.named(spec.name.as_str()) {
            return match entry.origin {
                Origin::File => Err(MachineError::InFile(spec.name)),
                Origin::Api if entry.spec.description == spec.description => Ok(Made::Already),
                Origin::Api => Err(MachineError::Exists(spec.name)),
            };
        }
        if registry.len() >= SERIES_MAX {
            return Err(MachineError::TooMany(SERIES_MAX));
        }
        let (name, description) = (spec.name.clone(), spec.description.clone());
        match self.prepare(spec, None).await {
            Ok(_publication) => Ok(Made::New),
            Err(MachineError::ChangedMeanwhile(_)) => {
                self.catch_up(&mut changing).await?;
                match self.named(name.as_str()) {
                    Some(entry) if entry.spec.description == description => Ok(Made::Already),
                    _ => Err(MachineError::Exists(name)),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Changes limits, rejection rules, audit or promise of a series made at run time. `change` gets the current
    /// description, which no other call changes meanwhile.
    pub async fn amend<E: From<MachineError>>(
        &self,
        name: &SeriesName,
        change: impl FnOnce(&SeriesSpec) -> Result<SeriesSpec, E>,
    ) -> Result<(), E> {
        let mut changing = self.changing.lock().await;
        self.catch_up(&mut changing).await?;
        let entry = self.made_at_run_time(name)?;
        let spec = change(&entry.spec)?;
        if !entry.spec.differs_in_what_may_change_only(&spec) {
            return Err(MachineError::Exists(spec.name).into());
        }
        let (from, to) = (entry.spec.promise, spec.promise);
        if from != to {
            spec.check()?;
            let (before, after) = (entry.spec.description.clone(), spec.description.clone());
            self.pin_promise(name, PromiseChange { from, to }, Some(Redescription { before, after })).await?;
        } else if self.store().is_shared() && to != Promise::Unique {
            self.keep_order(name).await?;
        }
        let publication = self.prepare(spec, Some(entry.spec.description.clone())).await?;
        // Positions in memory have the old limits and come back with the new ones. Callers wait for those meanwhile.
        self.dispenser.retire(&entry.series).await;
        drop(publication);
        Ok(())
    }

    /// Retires a series made at run time. On return this node issues nothing in its name; other nodes do until they
    /// follow. Its pin and its cursors stay for ever.
    pub async fn retire(&self, name: &SeriesName) -> Result<Closed, MachineError> {
        let mut changing = self.changing.lock().await;
        self.catch_up(&mut changing).await?;
        let entry = self.made_at_run_time(name)?;
        let before = Some(entry.spec.description.clone());
        if !self.store().describe(name.clone(), before, None).await? {
            return Err(MachineError::ChangedMeanwhile(name.clone()));
        }
        let registry = self.registry().without(name);
        self.keep_memory(&entry);
        self.registry.store(registry.into());
        Ok(self.dispenser.retire(&entry.series).await)
    }

    /// Raises the cursor of a scope to `floor`, so that nothing below it is ever issued again, and returns the cursor;
    /// a higher one stays. No process may have issued from the scope or issue meanwhile: its leases would lie below the
    /// floor.
    pub async fn raise_floor(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        floor: u64,
    ) -> Result<u64, NextError> {
        let open = self.open_scope(entry, name)?;
        Ok(self.raise_floor_of(entry, open.key(), floor).await?)
    }

    pub async fn raise_floor_of(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        floor: u64,
    ) -> Result<u64, IssueError> {
        let place = entry.series.place(scope);
        // A new scope must not begin before the series does.
        let floor = floor.clamp(entry.series.start().value(), entry.series.end());
        let raised = self.store().raise_floor(place.clone(), floor).await;
        Ok(raised.map_err(IssueError::of_store(&place))?.next)
    }

    /// Adopts positions of a scope, so that their numbers are never issued. Returns how many were granted before. No
    /// process may have issued from the scope or issue meanwhile.
    pub async fn set_aside(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        positions: Vec<Position>,
    ) -> Result<u64, IssueError> {
        let place = entry.series.place(scope);
        let passed = self.store().set_aside(place.clone(), positions).await;
        passed.map_err(IssueError::of_store(&place))
    }

    /// Ascending, from `from` on, at most `limit`.
    pub async fn aside(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Position>, StoreError> {
        self.store().aside(entry.series.place(scope), from, limit).await
    }

    /// Opens a series and records its description. Dropping the publication publishes it.
    async fn prepare(
        &self,
        spec: SeriesSpec,
        before: Option<Box<str>>,
    ) -> Result<Publication<'_>, MachineError> {
        let registry = self.registry();
        registry.check_apart(&spec)?;
        let (name, description) = (spec.name.clone(), spec.description.clone());
        let store = self.dispenser.store();
        let entry = open::open_series(store, spec, Origin::Api, self.memory_of(&registry, &name)).await?;
        if !store.describe(name.clone(), before, Some(description)).await? {
            return Err(MachineError::ChangedMeanwhile(name));
        }
        Ok(Publication { next: registry.with(entry).into(), current: &self.registry })
    }

    /// The entry in the place of a retired one, once the change is over.
    pub(crate) async fn in_place_of(&self, retired: &Series) -> Option<Arc<Entry>> {
        let current = || self.named(retired.name().as_str()).filter(|entry| !entry.series.is(retired));
        if let Some(entry) = current() {
            return Some(entry);
        }
        // Another node may have changed it. If the store cannot be asked, this node knows as much as it can.
        let _ = Box::pin(self.follow()).await;
        drop(self.changing.lock().await);
        current()
    }

    /// The memory of the ordered series of a name, shared by a series in its place.
    pub(crate) fn memory_of(&self, registry: &Registry, name: &SeriesName) -> Arc<Memory> {
        let current =
            registry.named(name.as_str()).filter(|entry| entry.series.promise() == Promise::Ordered);
        match current {
            Some(entry) => entry.series.memory().clone(),
            None => self.retired_memory.lock().get(name).cloned().unwrap_or_default(),
        }
    }

    /// Keeps the memory of a retired ordered series for a later one of its name.
    fn keep_memory(&self, entry: &Entry) {
        if entry.series.promise() == Promise::Ordered {
            let (name, memory) = (entry.series.name().clone(), entry.series.memory().clone());
            self.retired_memory.lock().insert(name, memory);
        }
    }

    fn made_at_run_time(&self, name: &SeriesName) -> Result<Arc<Entry>, MachineError> {
        match self.registry().named(name.as_str()) {
            None => Err(MachineError::Unknown(name.clone())),
            Some(entry) if entry.origin == Origin::File => Err(MachineError::InFile(name.clone())),
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

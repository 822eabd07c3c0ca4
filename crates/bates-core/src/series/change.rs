//! Creates, changes and retires series at run time.
//!
//! A retired series keeps its pin and its cursors, so a later series of its name must be the same or is refused. Before
//! a changed series is published, the positions that the old entry holds in memory are released, and nothing new begins
//! under it: a call that found the old entry waits for the new one, or is refused if the series is retired.
//! An ordered series that numbers documents holds nothing in memory, and neither does its replacement: a call that
//! found the old entry may still be granted a number.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bates_pattern::Position;

use super::open::open_series;
use super::{
    Caching, DescriptionChange, MachineError, MachineResult, Promise, PromiseChange, Registry, Series,
    SeriesEntry, SeriesName, SeriesOrigin, SeriesSpec,
};
use crate::audit::Actor;
use crate::dispenser::ReleaseReport;
use crate::error::IssueError;
use crate::machine::{Machine, NextError};
use crate::operation::OperationKind;
use crate::scope::{ScopeKey, ScopeParams};
use crate::store::{Store, StoreResult};

/// Max series. Each is searched when an identifier is traced.
pub const SERIES_MAX: usize = 10_000;

/// How often a series is created anew because another node has changed one meanwhile. One of the nodes always succeeds.
const CREATE_TRIES_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is new, or continues a retired series.
    Created,
    /// It existed with the same description.
    Existed,
}

impl<S: Store> Machine<S> {
    /// Creates a series. Its cursors continue if a series of its name existed before.
    pub async fn create_series(&self, spec: SeriesSpec, actor: Actor<'_>) -> MachineResult<CreateOutcome> {
        self.create_series_if(spec, |_| Ok(()), actor).await
    }

    /// As [`Self::create_series`], if `admit` accepts it beside the series that exist then. A caller may have waited long.
    pub async fn create_series_if<E: From<MachineError>>(
        &self,
        spec: SeriesSpec,
        admit: impl Fn(&Registry) -> Result<(), E>,
        actor: Actor<'_>,
    ) -> Result<CreateOutcome, E> {
        let mut changing = self.series_sync.lock().await;
        let name = spec.name.clone();
        for _ in 0..CREATE_TRIES_MAX {
            self.sync_series_locked(&mut changing).await?;
            let registry = self.registry();
            admit(&registry)?;
            if let Some(entry) = registry.get(name.as_str()) {
                return match entry.origin {
                    SeriesOrigin::File => Err(MachineError::InFile(name).into()),
                    SeriesOrigin::Api if entry.spec.description == spec.description => {
                        Ok(CreateOutcome::Existed)
                    }
                    SeriesOrigin::Api => Err(MachineError::Exists(name).into()),
                };
            }
            if registry.len() >= SERIES_MAX {
                return Err(MachineError::TooMany(SERIES_MAX).into());
            }
            // In a store of one process, no other changes series.
            let revision = changing.revision().filter(|_| self.is_shared());
            let before = DescriptionChange { revision, ..DescriptionChange::default() };
            match self.prepare(spec.clone(), before, OperationKind::SeriesCreated, actor).await {
                Ok(_publication) => return Ok(CreateOutcome::Created),
                // Another node has changed a series meanwhile.
                Err(MachineError::ChangedMeanwhile(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(MachineError::ChangedMeanwhile(name).into())
    }

    /// Changes limits, rejection rules, audit or promise of a series that was created at run time, one call at a time.
    pub async fn change_series<E: From<MachineError>>(
        &self,
        name: &SeriesName,
        change: impl FnOnce(&SeriesSpec) -> Result<SeriesSpec, E>,
        actor: Actor<'_>,
    ) -> Result<(), E> {
        let mut changing = self.series_sync.lock().await;
        self.sync_series_locked(&mut changing).await?;
        let entry = self.changeable_series(name)?;
        let spec = change(&entry.spec)?;
        if !entry.spec.has_same_identity(&spec) {
            return Err(MachineError::Exists(spec.name).into());
        }
        self.registry().check_word_count(&spec)?;
        let (from, to) = (entry.spec.promise, spec.promise);
        if from != to {
            spec.check()?;
            let (before, after) = (entry.spec.description.clone(), spec.description.clone());
            let described = DescriptionChange { before: Some(before), after: Some(after), revision: None };
            let operation = self.promise_operation(name, from, to, actor);
            self.pin_promise(name, PromiseChange { from, to }, Some(described), operation).await?;
        } else if self.store().is_shared() && to != Promise::Unique {
            self.recall_before_change(name).await?;
        }
        let before = Some(entry.spec.description.clone());
        let before = DescriptionChange { before, ..DescriptionChange::default() };
        let publication = self.prepare(spec, before, OperationKind::SeriesChanged, actor).await?;
        // Positions in memory go back and are granted again under the new limits; callers wait meanwhile.
        self.dispenser.retire(&entry.series).await;
        drop(publication);
        Ok(())
    }

    /// Retires a series that was created at run time. On return this node issues none of its numbers; other nodes may
    /// until they synchronize. Its pin and its cursors stay for ever.
    pub async fn retire_series(&self, name: &SeriesName, actor: Actor<'_>) -> MachineResult<ReleaseReport> {
        self.retire_series_if(name, || Ok(()), actor).await
    }

    /// As [`Self::retire_series`], if `admit` accepts it then. A caller may have waited long.
    pub async fn retire_series_if<E: From<MachineError>>(
        &self,
        name: &SeriesName,
        admit: impl FnOnce() -> Result<(), E>,
        actor: Actor<'_>,
    ) -> Result<ReleaseReport, E> {
        let mut changing = self.series_sync.lock().await;
        self.sync_series_locked(&mut changing).await?;
        admit()?;
        let entry = match self.changeable_series(name) {
            Ok(entry) => entry,
            Err(MachineError::Unknown(_)) => return Ok(self.retire_unopened(name, actor).await?),
            Err(error) => return Err(error.into()),
        };
        self.write_retirement(name, entry.spec.description.clone(), actor).await?;
        let registry = self.registry().without(name);
        self.keep_caching(&entry);
        self.registry.store(registry.into());
        Ok(self.dispenser.retire(&entry.series).await)
    }

    /// Retires a series that the store describes and this node could not open, so that an operator can remove it.
    async fn retire_unopened(&self, name: &SeriesName, actor: Actor<'_>) -> MachineResult<ReleaseReport> {
        let descriptions = self.store().descriptions().await?;
        let described = descriptions.into_iter().find(|(described, _)| described == name);
        let (_, description) = described.ok_or_else(|| MachineError::Unknown(name.clone()))?;
        self.write_retirement(name, description, actor).await?;
        Ok(ReleaseReport::default())
    }

    async fn write_retirement(
        &self,
        name: &SeriesName,
        description: Box<str>,
        actor: Actor<'_>,
    ) -> MachineResult<()> {
        let change = DescriptionChange { before: Some(description), ..DescriptionChange::default() };
        let operation = self.operation(actor, OperationKind::SeriesRetired, Some(name));
        let operation = operation.between(change.before.as_deref(), None);
        let is_retired = self.store().describe(name.clone(), change, Some(operation)).await?;
        if is_retired { Ok(()) } else { Err(MachineError::ChangedMeanwhile(name.clone())) }
    }

    /// Raises the cursor of a scope to `floor`, so that nothing below it is ever granted again, and returns the cursor;
    /// a higher one stays. The caller must recall ranges that processes hold: they may lie below the floor.
    pub async fn raise_floor(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        floor: u64,
        actor: Actor<'_>,
    ) -> Result<u64, NextError> {
        let open = self.open_scope(entry, params)?;
        Ok(self.raise_scope_floor(entry, open.key(), floor, actor).await?)
    }

    pub async fn raise_scope_floor(
        &self,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        floor: u64,
        actor: Actor<'_>,
    ) -> Result<u64, IssueError> {
        let scope_id = entry.series.scope_id(scope);
        // A new scope must not begin before the series does.
        let floor = floor.clamp(entry.series.start().value(), entry.series.end());
        let operation = self.operation(actor, OperationKind::FloorRaised, Some(&scope_id.series));
        let raised = self.store().raise_floor(scope_id.clone(), floor, Some(operation)).await;
        Ok(raised.map_err(IssueError::from_store(&scope_id))?.next)
    }

    /// Adopts positions of a scope, so that their numbers are never granted. Returns how many were granted before. The
    /// caller must recall ranges that processes hold: they may include adopted positions.
    pub async fn adopt_positions(
        &self,
        entry: &SeriesEntry,
        scope: &ScopeKey,
        positions: Vec<Position>,
        actor: Actor<'_>,
    ) -> Result<u64, IssueError> {
        let scope_id = entry.series.scope_id(scope);
        let operation = self.operation(actor, OperationKind::PositionsAdopted, Some(&scope_id.series));
        let passed = self.store().adopt_positions(scope_id.clone(), positions, Some(operation)).await;
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

    /// Opens a series and records its description, which replaces that of `before`. Dropping the publication publishes it.
    async fn prepare(
        &self,
        spec: SeriesSpec,
        before: DescriptionChange,
        kind: OperationKind,
        actor: Actor<'_>,
    ) -> MachineResult<Publication<'_>> {
        let registry = self.registry();
        registry.check_key_is_free(&spec)?;
        registry.check_word_count(&spec)?;
        let name = spec.name.clone();
        let change = DescriptionChange { after: Some(spec.description.clone()), ..before };
        let caching = self.caching_of(&registry, &name);
        let entry = open_series(self.store(), spec, SeriesOrigin::Api, caching).await?;
        // Only now, so that its time is that of the commit.
        let operation = self.operation(actor, kind, Some(&name));
        let operation = operation.between(change.before.as_deref(), change.after.as_deref());
        // A description that stays the same is no operation.
        let operation = Some(operation).filter(|_| change.before != change.after);
        if !self.store().describe(name.clone(), change, operation).await? {
            return Err(MachineError::ChangedMeanwhile(name));
        }
        Ok(Publication { next: registry.with(entry).into(), current: &self.registry })
    }

    /// The entry that replaces a retired one, once the change is over.
    pub(crate) async fn replacement_of(&self, retired: &Series) -> Option<Arc<SeriesEntry>> {
        let current = || self.series(retired.name().as_str()).filter(|entry| !entry.series.is(retired));
        if let Some(entry) = current() {
            return Some(entry);
        }
        // Another node may have changed it. If the store cannot be read, use what this node knows.
        let _ = Box::pin(self.sync_series()).await;
        drop(self.series_sync.lock().await);
        current()
    }

    /// The caching state of the ordered series of a name, which its replacement shares.
    pub(crate) fn caching_of(&self, registry: &Registry, name: &SeriesName) -> Arc<Caching> {
        match registry.get(name.as_str()) {
            Some(entry) if entry.series.promise() == Promise::Ordered => entry.series.caching().clone(),
            _ => self.retired_caching.lock().get(name).cloned().unwrap_or_default(),
        }
    }

    /// Keeps the caching state of a retired ordered series for a later one of its name.
    fn keep_caching(&self, entry: &SeriesEntry) {
        if entry.series.promise() == Promise::Ordered {
            let (name, caching) = (entry.series.name().clone(), entry.series.caching().clone());
            self.retired_caching.lock().insert(name, caching);
        }
    }

    fn changeable_series(&self, name: &SeriesName) -> MachineResult<Arc<SeriesEntry>> {
        match self.registry().get(name.as_str()) {
            None => Err(MachineError::Unknown(name.clone())),
            Some(entry) if entry.origin == SeriesOrigin::File => Err(MachineError::InFile(name.clone())),
            Some(entry) => Ok(entry.clone()),
        }
    }
}

/// Publishes a registry when it is dropped, also if the call that changes a series is cancelled.
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

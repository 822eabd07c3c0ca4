//! Opens the series that the store has descriptions of, and synchronizes with changes by other nodes.
//!
//! A node that synchronizes late is safe: the text of a series is pinned and each position is granted to one node, so no
//! number comes twice. Only limits, and whether the series exists, are late.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::change::Publication;
use super::open::open_series;
use super::{
    DescriptionChange, MachineError, MachineResult, Registry, SeriesEntry, SeriesName, SeriesOrigin,
    SeriesSpec,
};
use crate::audit::{Actor, Channel};
use crate::machine::Machine;
use crate::operation::OperationKind;
use crate::store::{Store, StoreError, StoreResult};

pub type SpecReader = fn(&SeriesName, &str) -> Result<SeriesSpec, Box<str>>;

#[derive(Debug, Default)]
pub struct SyncReport {
    pub changed: bool,
    /// Series that cannot be opened here, for example because their keys overlap with those of this node's configuration.
    pub refused: Vec<MachineError>,
}

#[derive(Debug, Default)]
pub(crate) struct SeriesSync {
    read: Option<SpecReader>,
    /// The store's revision when its descriptions were last read.
    revision: Option<u64>,
}

impl SeriesSync {
    pub(crate) fn revision(&self) -> Option<u64> {
        self.revision
    }
}

impl<S: Store> Machine<S> {
    /// Opens all series that the store has descriptions of, or none. From then on the machine can synchronize.
    ///
    /// Returns those that stay closed because their keys could be those of others created at run time: the store may have
    /// them from a version that allowed it. Of two such series every node opens the first by name.
    pub async fn load_series(&self, read: SpecReader) -> MachineResult<Vec<MachineError>> {
        let mut sync = self.series_sync.lock().await;
        // A store that issues nothing can still be read, and its floors raised.
        let revision = self.store().check_revision().await.ok();
        self.load_tokens().await?;
        let (registry, report) = self.read_descriptions(read).await?;
        let is_of_api = |name: &SeriesName| {
            registry.get(name.as_str()).is_none_or(|entry| entry.origin == SeriesOrigin::Api)
        };
        let meets_another = |refused: &MachineError| matches!(refused, MachineError::KeysMeet { first, second, .. } if is_of_api(first) && is_of_api(second));
        let (closed, refused): (Vec<_>, Vec<_>) = report.refused.into_iter().partition(meets_another);
        if let Some(refused) = refused.into_iter().next() {
            return Err(refused);
        }
        *sync = SeriesSync { read: Some(read), revision };
        self.registry.store(registry.into());
        Ok(closed)
    }

    /// Takes over the changes of other nodes; concurrent callers share one check of the store.
    pub async fn sync_series(&self) -> MachineResult<SyncReport> {
        if !self.store().is_shared() {
            return Ok(SyncReport::default());
        }
        let checks = self.sync_count.load(Ordering::Acquire);
        let mut sync = self.series_sync.lock().await;
        // A check that began after this call saw all that this call could see.
        if self.sync_count.load(Ordering::Acquire) > checks {
            return Ok(SyncReport { changed: true, refused: Vec::new() });
        }
        self.sync_series_locked(&mut sync).await
    }

    /// As `sync_series`, for a caller that holds the lock.
    pub(crate) async fn sync_series_locked(&self, sync: &mut SeriesSync) -> MachineResult<SyncReport> {
        let Some(read) = sync.read.filter(|_| self.is_shared()) else { return Ok(SyncReport::default()) };
        self.sync_count.fetch_add(1, Ordering::AcqRel);
        // Read before the descriptions: the next check sees later changes.
        let revision = self.check_store().await?;
        if sync.revision == Some(revision) {
            return Ok(SyncReport::default());
        }
        let before = self.registry().clone();
        let (registry, report) = self.read_descriptions(read).await?;
        self.load_tokens().await?;
        sync.revision = Some(revision);
        let is_gone = |entry: &&Arc<SeriesEntry>| {
            let now = registry.get(entry.spec.name.as_str());
            !now.is_some_and(|now| Arc::ptr_eq(now, entry))
        };
        let gone: Vec<Arc<SeriesEntry>> = before.entries().filter(is_gone).cloned().collect();
        let publication = Publication { next: registry.into(), current: &self.registry };
        for entry in gone {
            self.dispenser.retire(&entry.series).await;
        }
        drop(publication);
        Ok(report)
    }

    /// Checks the store, gives up earlier grants if it was restored, and answers its recalls.
    async fn check_store(&self) -> StoreResult<u64> {
        let revision = self.store().check_revision().await;
        self.dispenser.discard_if_restored();
        // Also if the store has stopped: held positions must be given up then too.
        let answered = self.dispenser.answer_recalls().await;
        revision.and_then(|revision| answered.map(|()| revision))
    }

    /// The series of the store's descriptions and of the configuration. Entries that did not change stay the same.
    async fn read_descriptions(&self, read: SpecReader) -> MachineResult<(Registry, SyncReport)> {
        let descriptions = self.store().descriptions().await?;
        let mut registry = Registry::clone(&self.registry());
        let is_described = |series: &SeriesName| descriptions.iter().any(|(name, _)| name == series);
        let of_api = registry.entries().filter(|entry| entry.origin == SeriesOrigin::Api);
        let retired = of_api.map(|entry| &entry.spec.name).filter(|name| !is_described(name));
        let retired: Vec<SeriesName> = retired.cloned().collect();
        let mut report = SyncReport { changed: !retired.is_empty(), refused: Vec::new() };
        for name in retired {
            registry.remove(&name);
        }
        for (name, text) in descriptions {
            match registry.get(name.as_str()).map(|entry| (entry.origin, &entry.spec.description)) {
                // The series moved to the configuration: once removed from that, it must not come back. In a shared
                // store the description stays, because other nodes may have another configuration.
                Some((SeriesOrigin::File, _)) if self.is_shared() => {}
                Some((SeriesOrigin::File, _)) => {
                    self.forget_description(name, text).await?;
                }
                Some((SeriesOrigin::Api, described)) if *described == text => {}
                _ => {
                    let opened = match read(&name, &text) {
                        Ok(spec) => self.reopen(&mut registry, spec, SeriesOrigin::Api).await,
                        Err(problem) => Err(MachineError::Unreadable { series: name, problem }),
                    };
                    match opened {
                        Ok(()) => report.changed = true,
                        // The next check reads the same descriptions again.
                        Err(error @ MachineError::Store(StoreError::Unavailable(_))) => return Err(error),
                        Err(error) => report.refused.push(error),
                    }
                }
            }
        }
        report.changed |= self.sync_promises(&mut registry).await?;
        Ok((registry, report))
    }

    async fn forget_description(&self, series: SeriesName, text: Box<str>) -> MachineResult<()> {
        let change = DescriptionChange { before: Some(text), ..DescriptionChange::default() };
        let actor = Actor { caller: "configuration", channel: Channel::Server };
        let operation = self.operation(actor, OperationKind::SeriesRetired, Some(&series));
        let operation = operation.between(change.before.as_deref(), None);
        self.store().describe(series, change, Some(operation)).await?;
        Ok(())
    }

    /// Reopens series of the configuration whose promise was changed since this process began.
    async fn sync_promises(&self, registry: &mut Registry) -> MachineResult<bool> {
        let mut has_changed = false;
        for (name, promise) in self.store().promises().await? {
            let Some(entry) = registry.get(name.as_str()) else { continue };
            if entry.origin == SeriesOrigin::File && entry.spec.promise != promise {
                let spec = SeriesSpec { promise, ..entry.spec.clone() };
                self.reopen(registry, spec, SeriesOrigin::File).await?;
                has_changed = true;
            }
        }
        Ok(has_changed)
    }

    async fn reopen(&self, all: &mut Registry, spec: SeriesSpec, origin: SeriesOrigin) -> MachineResult<()> {
        let caching = self.caching_of(all, &spec.name);
        all.remove(&spec.name);
        all.check_key_is_free(&spec)?;
        all.insert(open_series(self.store(), spec, origin, caching).await?);
        Ok(())
    }
}

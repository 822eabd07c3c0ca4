//! Series that the store keeps descriptions of: opened at the start, and followed while other nodes change them.
//!
//! A node that follows late is safe: the text of a series is pinned and positions are granted to one node, so no number
//! comes twice. Only limits, and whether the series exists, are late. What the old entry holds is sealed before the new
//! one is published.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::change::Publication;
use super::{MachineError, Registry, SeriesEntry, SeriesName, SeriesOrigin, SeriesSpec, open};
use crate::machine::Machine;
use crate::store::{Store, StoreError, StoreResult};

pub type SpecReader = fn(&SeriesName, &str) -> Result<SeriesSpec, Box<str>>;

#[derive(Debug, Default)]
pub struct SyncReport {
    pub changed: bool,
    /// Series that cannot be opened here, for example because their keys meet those of this node's configuration.
    pub refused: Vec<MachineError>,
}

#[derive(Debug, Default)]
pub(crate) struct SeriesSync {
    read: Option<SpecReader>,
    /// The store's revision when its descriptions were last read.
    revision: Option<u64>,
}

impl<S: Store> Machine<S> {
    /// Opens all series that the store keeps descriptions of, or none. From now on the machine can follow the store.
    pub async fn load_series(&self, read: SpecReader) -> Result<(), MachineError> {
        let mut follower = self.series_sync.lock().await;
        // A store that issues nothing can still be read, and its floors raised.
        let described = self.store().check_revision().await.ok();
        let (registry, followed) = self.read_descriptions(read).await?;
        if let Some(refused) = followed.refused.into_iter().next() {
            return Err(refused);
        }
        *follower = SeriesSync { read: Some(read), revision: described };
        self.registry.store(registry.into());
        Ok(())
    }

    /// Follows the changes of other nodes; concurrent callers share one look at the store.
    pub async fn sync_series(&self) -> Result<SyncReport, MachineError> {
        if !self.store().is_shared() {
            return Ok(SyncReport::default());
        }
        let looks = self.sync_count.load(Ordering::Acquire);
        let mut follower = self.series_sync.lock().await;
        // A look that began after this call saw all that this call could see.
        if self.sync_count.load(Ordering::Acquire) > looks {
            return Ok(SyncReport { changed: true, refused: Vec::new() });
        }
        self.sync_series_locked(&mut follower).await
    }

    /// Follows before a change.
    pub(crate) async fn sync_series_locked(
        &self,
        follower: &mut SeriesSync,
    ) -> Result<SyncReport, MachineError> {
        let Some(read) = follower.read.filter(|_| self.is_shared()) else { return Ok(SyncReport::default()) };
        self.sync_count.fetch_add(1, Ordering::AcqRel);
        let described = self.check_store().await?;
        if follower.revision == Some(described) {
            return Ok(SyncReport::default());
        }
        let before = self.registry().clone();
        // Read before the descriptions: later changes are seen the next time.
        let (registry, followed) = self.read_descriptions(read).await?;
        follower.revision = Some(described);
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
        Ok(followed)
    }

    /// Checks the store, gives up what was granted before a restore, and answers its recalls.
    async fn check_store(&self) -> StoreResult<u64> {
        let watched = self.store().check_revision().await;
        self.dispenser.discard_if_restored();
        // Also while the store has stopped: held positions must be given up then too.
        let answered = self.dispenser.answer_recalls().await;
        watched.and_then(|revision| answered.map(|()| revision))
    }

    /// The series of the store's descriptions and of the configuration. Entries that did not change stay the same.
    async fn read_descriptions(&self, read: SpecReader) -> Result<(Registry, SyncReport), MachineError> {
        let descriptions = self.store().descriptions().await?;
        let mut registry = Registry::clone(&self.registry());
        let retired = registry.entries().filter(|entry| {
            entry.origin == SeriesOrigin::Api
                && !descriptions.iter().any(|(name, _)| *name == entry.spec.name)
        });
        let retired: Vec<SeriesName> = retired.map(|entry| entry.spec.name.clone()).collect();
        let mut followed = SyncReport { changed: !retired.is_empty(), refused: Vec::new() };
        for name in retired {
            registry.remove(&name);
        }
        for (name, text) in descriptions {
            match registry.get(name.as_str()).map(|entry| (entry.origin, &entry.spec.description)) {
                // The series belongs to the configuration: once removed from it, it does not come back. In a shared
                // store the description stays: other nodes may have another configuration.
                Some((SeriesOrigin::File, _)) if self.is_shared() => {}
                Some((SeriesOrigin::File, _)) => _ = self.store().describe(name, Some(text), None).await?,
                Some((SeriesOrigin::Api, described)) if *described == text => {}
                _ => {
                    let opened = match read(&name, &text) {
                        Ok(spec) => self.reopen(&mut registry, spec, SeriesOrigin::Api).await,
                        Err(problem) => Err(MachineError::Unreadable { series: name, problem }),
                    };
                    match opened {
                        Ok(()) => followed.changed = true,
                        // It may pass: the same descriptions are read again.
                        Err(error @ MachineError::Store(StoreError::Unavailable(_))) => return Err(error),
                        Err(error) => followed.refused.push(error),
                    }
                }
            }
        }
        followed.changed |= self.sync_promises(&mut registry).await?;
        Ok((registry, followed))
    }

    /// A series of the configuration whose promise was changed since this process began gets the new one.
    async fn sync_promises(&self, registry: &mut Registry) -> Result<bool, MachineError> {
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

    async fn reopen(
        &self,
        registry: &mut Registry,
        spec: SeriesSpec,
        origin: SeriesOrigin,
    ) -> Result<(), MachineError> {
        let memory = self.caching_of(registry, &spec.name);
        registry.remove(&spec.name);
        registry.check_key_is_free(&spec)?;
        registry.insert(open::open_series(self.store(), spec, origin, memory).await?);
        Ok(())
    }
}

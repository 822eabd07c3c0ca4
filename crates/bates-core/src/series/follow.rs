//! Series that the store keeps descriptions of: opened at the start, and followed while other nodes change them.
//!
//! A node that follows late is safe: the text of a series is pinned and positions are granted to one node, so no number
//! comes twice. Only limits, and whether the series exists, are late. What the old entry holds is sealed before the new
//! one is published.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::change::Publication;
use super::{Entry, MachineError, Origin, Registry, SeriesName, SeriesSpec, open};
use crate::machine::Machine;
use crate::store::{Store, StoreError};

pub type ReadSpec = fn(&SeriesName, &str) -> Result<SeriesSpec, Box<str>>;

#[derive(Debug, Default)]
pub struct Followed {
    pub changed: bool,
    /// Series that cannot be opened here, for example because their keys meet those of this node's configuration.
    pub refused: Vec<MachineError>,
}

#[derive(Debug, Default)]
pub(crate) struct Follower {
    read: Option<ReadSpec>,
    /// The store's revision when its descriptions were last read.
    described: Option<u64>,
}

impl<S: Store> Machine<S> {
    /// Opens all series that the store keeps descriptions of, or none. From now on the machine can follow the store.
    pub async fn restore(&self, read: ReadSpec) -> Result<(), MachineError> {
        let mut follower = self.changing.lock().await;
        // A store that issues nothing can still be read, and its floors raised.
        let described = self.store().watch().await.ok();
        let (registry, followed) = self.read_descriptions(read).await?;
        if let Some(refused) = followed.refused.into_iter().next() {
            return Err(refused);
        }
        *follower = Follower { read: Some(read), described };
        self.registry.store(registry.into());
        Ok(())
    }

    /// Follows the changes of other nodes; concurrent callers share one look at the store.
    pub async fn follow(&self) -> Result<Followed, MachineError> {
        if !self.store().is_shared() {
            return Ok(Followed::default());
        }
        let looks = self.looks.load(Ordering::Acquire);
        let mut follower = self.changing.lock().await;
        // A look that began after this call saw all that this call could see.
        if self.looks.load(Ordering::Acquire) > looks {
            return Ok(Followed { changed: true, refused: Vec::new() });
        }
        self.catch_up(&mut follower).await
    }

    /// Follows before a change.
    pub(crate) async fn catch_up(&self, follower: &mut Follower) -> Result<Followed, MachineError> {
        let Some(read) = follower.read.filter(|_| self.is_shared()) else { return Ok(Followed::default()) };
        self.looks.fetch_add(1, Ordering::AcqRel);
        let described = self.watch().await?;
        if follower.described == Some(described) {
            return Ok(Followed::default());
        }
        let before = self.registry().clone();
        // Read before the descriptions: later changes are seen the next time.
        let (registry, followed) = self.read_descriptions(read).await?;
        follower.described = Some(described);
        let is_gone = |entry: &&Arc<Entry>| {
            let now = registry.named(entry.spec.name.as_str());
            !now.is_some_and(|now| Arc::ptr_eq(now, entry))
        };
        let gone: Vec<Arc<Entry>> = before.entries().filter(is_gone).cloned().collect();
        let publication = Publication { next: registry.into(), current: &self.registry };
        for entry in gone {
            self.dispenser.retire(&entry.series).await;
        }
        drop(publication);
        Ok(followed)
    }

    /// Checks the store, gives up what was granted before a restore, and answers its recalls.
    async fn watch(&self) -> Result<u64, StoreError> {
        let watched = self.store().watch().await;
        self.dispenser.keep_up();
        // Also while the store has stopped: held positions must be given up then too.
        let answered = self.dispenser.answer_recalls().await;
        watched.and_then(|revision| answered.map(|()| revision))
    }

    /// The series of the store's descriptions and of the configuration. Entries that did not change stay the same.
    async fn read_descriptions(&self, read: ReadSpec) -> Result<(Registry, Followed), MachineError> {
        let descriptions = self.store().descriptions().await?;
        let mut registry = Registry::clone(&self.registry());
        let retired = registry.entries().filter(|entry| {
            entry.origin == Origin::Api && !descriptions.iter().any(|(name, _)| *name == entry.spec.name)
        });
        let retired: Vec<SeriesName> = retired.map(|entry| entry.spec.name.clone()).collect();
        let mut followed = Followed { changed: !retired.is_empty(), refused: Vec::new() };
        for name in retired {
            registry.remove(&name);
        }
        for (name, text) in descriptions {
            match registry.named(name.as_str()).map(|entry| (entry.origin, &entry.spec.description)) {
                // The series belongs to the configuration: once removed from it, it does not come back. In a shared
                // store the description stays: other nodes may have another configuration.
                Some((Origin::File, _)) if self.is_shared() => {}
                Some((Origin::File, _)) => _ = self.store().describe(name, Some(text), None).await?,
                Some((Origin::Api, described)) if *described == text => {}
                _ => {
                    let opened = match read(&name, &text) {
                        Ok(spec) => self.reopen(&mut registry, spec, Origin::Api).await,
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
        followed.changed |= self.follow_promises(&mut registry).await?;
        Ok((registry, followed))
    }

    /// A series of the configuration whose promise was changed since this process began gets the new one.
    async fn follow_promises(&self, registry: &mut Registry) -> Result<bool, MachineError> {
        let mut has_changed = false;
        for (name, promise) in self.store().promises().await? {
            let Some(entry) = registry.named(name.as_str()) else { continue };
            if entry.origin == Origin::File && entry.spec.promise != promise {
                let spec = SeriesSpec { promise, ..entry.spec.clone() };
                self.reopen(registry, spec, Origin::File).await?;
                has_changed = true;
            }
        }
        Ok(has_changed)
    }

    async fn reopen(
        &self,
        registry: &mut Registry,
        spec: SeriesSpec,
        origin: Origin,
    ) -> Result<(), MachineError> {
        let memory = self.memory_of(registry, &spec.name);
        registry.remove(&spec.name);
        registry.check_apart(&spec)?;
        registry.insert(open::open_series(self.store(), spec, origin, memory).await?);
        Ok(())
    }
}

//! Series that the store keeps descriptions of: opened at the start, and followed while other nodes make, change and
//! retire them.
//!
//! What could go wrong, and why it does not: a node that follows late issues from a series that was changed
//! elsewhere. Its text is pinned, and its positions are granted to this node alone, so no number comes twice; only
//! limits, and whether there is such a series at all, are late. What the old entry holds is sealed before the new one is
//! there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::change::Publication;
use super::{Entry, MachineError, Origin, Registry, SeriesName, SeriesSpec, open};
use crate::machine::Machine;
use crate::store::{Store, StoreError};

/// Reads the description of a series that a store kept.
pub type ReadSpec = fn(&SeriesName, &str) -> Result<SeriesSpec, Box<str>>;

/// What following the store came to.
#[derive(Debug, Default)]
pub struct Followed {
    /// Whether the series are others than before.
    pub changed: bool,
    /// Series that cannot be opened here: their keys meet those of this node's configuration, say.
    pub refused: Vec<MachineError>,
}

#[derive(Debug, Default)]
pub(crate) struct Follower {
    read: Option<ReadSpec>,
    /// What the store said when its descriptions were last read.
    described: Option<u64>,
}

impl<S: Store> Machine<S> {
    /// Opens the series that the store describes, all or none. From now on the machine can follow the store.
    pub async fn restore(&self, read: ReadSpec) -> Result<(), MachineError> {
        let mut follower = self.changing.lock().await;
        // Series can be looked at, and floors raised, also in a store that issues nothing.
        let described = self.store().watch().await.ok();
        let (registry, followed) = self.read_descriptions(read).await?;
        match followed.refused.into_iter().next() {
            Some(refused) => Err(refused),
            None => {
                *follower = Follower { read: Some(read), described };
                self.registry.store(registry.into());
                Ok(())
            }
        }
    }

    /// Follows what other nodes have made, changed or retired; one look at the store serves all who ask together.
    pub async fn follow(&self) -> Result<Followed, MachineError> {
        if !self.store().is_shared() {
            return Ok(Followed::default());
        }
        let looks = self.looks.load(Ordering::Acquire);
        let mut follower = self.changing.lock().await;
        // A look that began after this call saw all that it could see.
        if self.looks.load(Ordering::Acquire) > looks {
            return Ok(Followed { changed: true, refused: Vec::new() });
        }
        self.catch_up(&mut follower).await
    }

    /// Follows, for whoever is about to change something.
    pub(crate) async fn catch_up(&self, follower: &mut Follower) -> Result<Followed, MachineError> {
        let Some(read) = follower.read.filter(|_| self.is_shared()) else { return Ok(Followed::default()) };
        self.looks.fetch_add(1, Ordering::AcqRel);
        let described = self.watch().await?;
        if follower.described == Some(described) {
            return Ok(Followed::default());
        }
        let before = self.registry().clone();
        // Asked before the descriptions are read: what is described meanwhile is seen the next time.
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

    /// Looks at the store, gives up what it no longer vouches for, and answers its recalls.
    async fn watch(&self) -> Result<u64, StoreError> {
        let watched = self.store().watch().await;
        self.dispenser.keep_up();
        // Also while the store has stopped: what is held has to be given up then as well.
        let answered = self.dispenser.answer_recalls().await;
        watched.and_then(|revision| answered.map(|()| revision))
    }

    /// The series of the store's descriptions and of the configuration. Unchanged entries stay the same.
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
                Some((Origin::File, _)) => self.leave_to_the_configuration(name, text).await?,
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

    /// A series that the configuration describes as well is the configuration's from now on: taken out of it, it
    /// does not come back. Where other nodes have another configuration, they still need the description.
    async fn leave_to_the_configuration(&self, name: SeriesName, text: Box<str>) -> Result<(), MachineError> {
        if !self.is_shared() {
            self.store().describe(name, Some(text), None).await?;
        }
        Ok(())
    }

    /// A series of the configuration whose promise was changed since this process began keeps the new one.
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

    /// Opens a series in the place of the one of its name, if there is one.
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

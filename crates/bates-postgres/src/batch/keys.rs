//! The idempotency keys of a batch: which of them are new, and which call takes each. Pure: knows no database.
//!
//! Invariant: of all calls with one key, at most one takes a position, in this batch or ever.

use std::collections::BTreeMap;

use bates_core::{Assign, AssignError, Assigned, Idempotency, SeriesName, StoreError};
use uuid::Uuid;

use super::Job;
use super::queue::Group;
use super::reckon::Ask;

/// A key as all nodes tell it apart; their order is the one in which every batch inserts them, so that none waits
/// for one that waits for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) caller: Box<str>,
    pub(crate) series: SeriesName,
    pub(crate) text: Box<str>,
}

/// What a key stands for: a request, and the document that it was numbered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) digest: [u8; 32],
    pub(crate) event: Uuid,
}

/// What the store says about a key, once it was inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is new, and this batch has it until it ends.
    Ours,
    /// It was used before.
    Before([u8; 32], Assigned),
    /// It was used before, and what for is not there: somebody has removed its document by hand.
    Lost,
}

#[derive(Debug)]
struct Entry {
    /// As it is inserted: that of the first call with the key.
    inserted: Request,
    is_ours: bool,
    taken: Option<([u8; 32], Assigned)>,
}

/// The keys of a batch.
#[derive(Debug, Default)]
pub(crate) struct Keys(BTreeMap<Key, Entry>);

impl Key {
    fn of(assign: &Assign, Idempotency { caller, key, .. }: &Idempotency) -> Self {
        Self { caller: caller.clone(), series: assign.place.series.clone(), text: key.clone() }
    }
}

impl Keys {
    /// Those of all calls in a batch.
    pub(crate) fn of(groups: &[Group<Job>]) -> Self {
        let asks = groups.iter().flat_map(|group| &group.jobs).map(|job| &job.ask);
        let mut keys = Self::default();
        for ask in asks {
            if let Ask::Assign(assign) = ask {
                keys.add(assign);
            }
        }
        keys
    }

    pub(super) fn add(&mut self, assign: &Assign) {
        if let Some(idempotency) = &assign.idempotency {
            let inserted = Request { digest: idempotency.digest, event: assign.event };
            let entry = Entry { inserted, is_ours: false, taken: None };
            self.0.entry(Key::of(assign, idempotency)).or_insert(entry);
        }
    }

    /// As they are inserted, in their order.
    pub(crate) fn inserted(&self) -> Vec<(&Key, Request)> {
        self.0.iter().map(|(key, entry)| (key, entry.inserted)).collect()
    }

    /// What the store says about each, in their order. `None` if it lacks one: then nothing may be reckoned.
    pub(crate) fn learn(mut self, known: Vec<Known>) -> Option<Self> {
        if known.len() != self.0.len() {
            return None;
        }
        for (entry, known) in self.0.values_mut().zip(known) {
            match known {
                Known::Ours => entry.is_ours = true,
                Known::Before(digest, assigned) => entry.taken = Some((digest, assigned)),
                Known::Lost => {}
            }
        }
        Some(self)
    }

    /// What a request is answered if its key was used before.
    pub(super) fn known(&self, assign: &Assign) -> Option<Result<Assigned, AssignError>> {
        let idempotency = assign.idempotency.as_ref()?;
        let entry = self.0.get(&Key::of(assign, idempotency));
        match entry.and_then(|entry| entry.taken.as_ref()) {
            Some((digest, _)) if *digest != idempotency.digest => Some(Err(AssignError::KeyReused)),
            Some((_, assigned)) => Some(Ok(Assigned { is_new: false, ..assigned.clone() })),
            None if entry.is_some_and(|entry| entry.is_ours) => None,
            // What it stands for is not known, so a second number could be taken for it.
            None => Some(Err(StoreError::Unavailable("what its key stands for is lost".into()).into())),
        }
    }

    /// A call has taken a position: whoever comes behind it with the same key gets the same.
    pub(super) fn take(&mut self, assign: &Assign, assigned: &Assigned) {
        if let Some(idempotency) = &assign.idempotency
            && let Some(entry) = self.0.get_mut(&Key::of(assign, idempotency))
        {
            entry.taken = Some((idempotency.digest, assigned.clone()));
        }
    }

    /// Those that were inserted and that nobody took: they must not stay.
    pub(crate) fn untaken(&self) -> Vec<&Key> {
        self.0
            .iter()
            .filter(|(_, entry)| entry.is_ours && entry.taken.is_none())
            .map(|(key, _)| key)
            .collect()
    }

    /// Those that another call took than the one they were inserted for, which was refused or had gone.
    pub(crate) fn retaken(&self) -> Vec<(&Key, Request)> {
        let retaken = self.0.iter().filter_map(|(key, entry)| {
            let (digest, assigned) = entry.taken.as_ref().filter(|_| entry.is_ours)?;
            let taken = Request { digest: *digest, event: assigned.event };
            (taken != entry.inserted).then_some((key, taken))
        });
        retaken.collect()
    }
}

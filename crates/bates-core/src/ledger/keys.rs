//! The idempotency keys of a batch: which of them are new, and which request uses each.
//!
//! Invariant: of all requests with one key, at most one takes a position, in this batch or ever.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Request;
use crate::document::{Assign, AssignError, Assigned, Idempotency};
use crate::series::SeriesName;
use crate::store::StoreError;

/// An idempotency key. Every batch inserts its keys in their order, so that no two batches wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub caller: Box<str>,
    pub series: SeriesName,
    pub text: Box<str>,
}

/// The request that a key belongs to, and the id of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    pub digest: [u8; 32],
    pub event: Uuid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is new, and no other batch can use it before this one ends.
    New,
    /// A request with this digest has used it.
    Used([u8; 32], Assigned),
    /// It was used, and an operator has removed its document.
    Lost,
}

#[derive(Debug)]
struct Entry {
    /// The first request with the key: a store may insert the key for it before the batch is decided.
    inserted: KeyUse,
    is_new: bool,
    taken: Option<([u8; 32], Assigned)>,
}

#[derive(Debug, Default)]
pub struct Keys(BTreeMap<Key, Entry>);

impl Key {
    fn of(assign: &Assign, Idempotency { caller, key, .. }: &Idempotency) -> Self {
        Self { caller: caller.clone(), series: assign.place.series.clone(), text: key.clone() }
    }
}

impl Keys {
    pub fn of<'r>(requests: impl IntoIterator<Item = &'r Request>) -> Self {
        let mut keys = Self::default();
        for request in requests {
            if let Request::Assign(assign) = request {
                keys.add(assign);
            }
        }
        keys
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, assign: &Assign) {
        if let Some(idempotency) = &assign.idempotency {
            let inserted = KeyUse { digest: idempotency.digest, event: assign.event };
            let entry = Entry { inserted, is_new: false, taken: None };
            self.0.entry(Key::of(assign, idempotency)).or_insert(entry);
        }
    }

    /// The keys in their order, each with the first request that has it.
    pub fn first_uses(&self) -> Vec<(&Key, KeyUse)> {
        self.0.iter().map(|(key, entry)| (key, entry.inserted)).collect()
    }

    /// Adds what the store has of each key, in their order. `None` if one is missing: then decide nothing.
    pub fn learn(mut self, known: Vec<KeyState>) -> Option<Self> {
        if known.len() != self.0.len() {
            return None;
        }
        for (entry, known) in self.0.values_mut().zip(known) {
            match known {
                KeyState::New => entry.is_new = true,
                KeyState::Used(digest, assigned) => entry.taken = Some((digest, assigned)),
                KeyState::Lost => {}
            }
        }
        Some(self)
    }

    /// The answer to a request whose key was used before.
    pub(super) fn answer(&self, assign: &Assign) -> Option<Result<Assigned, AssignError>> {
        let idempotency = assign.idempotency.as_ref()?;
        let entry = self.0.get(&Key::of(assign, idempotency));
        match entry.and_then(|entry| entry.taken.as_ref()) {
            Some((digest, _)) if *digest != idempotency.digest => Some(Err(AssignError::KeyReused)),
            Some((_, assigned)) => Some(Ok(Assigned { is_new: false, ..assigned.clone() })),
            None if entry.is_some_and(|entry| entry.is_new) => None,
            // The request may have a number already.
            None => {
                let (series, key) = (assign.place.series.as_str().into(), idempotency.key.clone());
                Some(Err(StoreError::KeyLost { series, key }.into()))
            }
        }
    }

    /// Notes that a request was numbered: later requests with its key get the same answer.
    pub(super) fn put(&mut self, assign: &Assign, assigned: &Assigned) {
        if let Some(idempotency) = &assign.idempotency
            && let Some(entry) = self.0.get_mut(&Key::of(assign, idempotency))
        {
            entry.taken = Some((idempotency.digest, assigned.clone()));
        }
    }

    /// New keys that no request used: a store that has inserted them removes them.
    pub fn unused(&self) -> Vec<&Key> {
        self.0.iter().filter(|(_, entry)| entry.is_new && entry.taken.is_none()).map(|(key, _)| key).collect()
    }

    /// New keys whose first request was refused or no longer waits, so that a later request used them.
    pub fn reused(&self) -> Vec<(&Key, KeyUse)> {
        let reused = self.0.iter().filter_map(|(key, entry)| {
            let (digest, assigned) = entry.taken.as_ref().filter(|_| entry.is_new)?;
            let taken = KeyUse { digest: *digest, event: assigned.event };
            (taken != entry.inserted).then_some((key, taken))
        });
        reused.collect()
    }
}

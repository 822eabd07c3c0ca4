//! What the scopes of a batch share: the idempotency keys, which of them are new and which request uses each; and how many
//! positions the batch may still search for one that the rules accept.
//!
//! Invariant: of all requests with one key, at most one takes a position, in this batch or ever.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Request;
use crate::document::{AssignError, AssignRequest, Assignment, Idempotency};
use crate::series::SeriesName;
use crate::store::StoreError;

/// An idempotency key. Every batch inserts its keys in sorted order, so that no two batches deadlock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdempotencyKey {
    pub caller: Box<str>,
    pub series: SeriesName,
    pub text: Box<str>,
}

/// The request that a key belongs to, and the id of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    pub digest: [u8; 32],
    pub document_id: Uuid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The key is new, and no other batch can use it before this one ends.
    New,
    /// A request with this digest used the key, and got this assignment.
    Used([u8; 32], Assignment),
    /// The key was used, but its document is gone: an operator removed it.
    Lost,
}

#[derive(Debug)]
struct Entry {
    /// The first request with the key: a store may insert the key for it before the batch is decided.
    first_use: KeyUse,
    is_new: bool,
    used_by: Option<([u8; 32], Assignment)>,
}

/// Rejected positions that one batch passes. A search of more goes on in later batches, so that others have their turn:
/// these take some ten milliseconds.
pub(crate) const SEARCHED_MAX: u64 = 32_768;

#[derive(Debug)]
pub struct BatchState {
    keys: BTreeMap<IdempotencyKey, Entry>,
    /// How many more rejected positions may be passed.
    pub(super) search_left: u64,
}

impl Default for BatchState {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), search_left: SEARCHED_MAX }
    }
}

impl IdempotencyKey {
    fn of(assign: &AssignRequest, Idempotency { caller, key, .. }: &Idempotency) -> Self {
        Self { caller: caller.clone(), series: assign.scope_id.series.clone(), text: key.clone() }
    }
}

impl BatchState {
    pub fn of<'r>(requests: impl IntoIterator<Item = &'r Request>) -> Self {
        let mut state = Self::default();
        for request in requests {
            if let Request::Assign(assign) = request {
                state.add_key(assign);
            }
        }
        state
    }

    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(super) fn add_key(&mut self, assign: &AssignRequest) {
        if let Some(idempotency) = &assign.idempotency {
            let first_use = KeyUse { digest: idempotency.digest, document_id: assign.document_id };
            let entry = Entry { first_use, is_new: false, used_by: None };
            self.keys.entry(IdempotencyKey::of(assign, idempotency)).or_insert(entry);
        }
    }

    /// The keys in sorted order, each with the first request of this batch that has it.
    pub fn first_uses(&self) -> Vec<(&IdempotencyKey, KeyUse)> {
        self.keys.iter().map(|(key, entry)| (key, entry.first_use)).collect()
    }

    /// Adds the state of each key in the store, in sorted order. `None` if one is missing: the batch must not be decided.
    pub fn with_states(mut self, states: Vec<KeyState>) -> Option<Self> {
        if states.len() != self.keys.len() {
            return None;
        }
        for (entry, state) in self.keys.values_mut().zip(states) {
            match state {
                KeyState::New => entry.is_new = true,
                KeyState::Used(digest, assignment) => entry.used_by = Some((digest, assignment)),
                KeyState::Lost => {}
            }
        }
        Some(self)
    }

    /// The answer to a request whose key was used before; `None` if the request must be numbered.
    pub(super) fn answer(&self, assign: &AssignRequest) -> Option<Result<Assignment, AssignError>> {
        let idempotency = assign.idempotency.as_ref()?;
        let entry = self.keys.get(&IdempotencyKey::of(assign, idempotency));
        match entry.and_then(|entry| entry.used_by.as_ref()) {
            Some((digest, _)) if *digest != idempotency.digest => Some(Err(AssignError::KeyReused)),
            Some((_, assignment)) => Some(Ok(Assignment { is_new: false, ..assignment.clone() })),
            None if entry.is_some_and(|entry| entry.is_new) => None,
            // Without its state, the key may have a number already: refuse.
            None => {
                let (series, key) = (assign.scope_id.series.as_str().into(), idempotency.key.clone());
                Some(Err(StoreError::KeyLost { series, key }.into()))
            }
        }
    }

    /// Notes that a request was numbered: later requests with its key get the same answer.
    pub(super) fn note_assignment(&mut self, assign: &AssignRequest, assignment: &Assignment) {
        if let Some(idempotency) = &assign.idempotency
            && let Some(entry) = self.keys.get_mut(&IdempotencyKey::of(assign, idempotency))
        {
            entry.used_by = Some((idempotency.digest, assignment.clone()));
        }
    }

    /// New keys with which no request was numbered. A store that has inserted them already removes them.
    pub fn unused(&self) -> Vec<&IdempotencyKey> {
        let unused = self.keys.iter().filter(|(_, entry)| entry.is_new && entry.used_by.is_none());
        unused.map(|(key, _)| key).collect()
    }

    /// New keys that a later request than the first one used: the first was refused, or its caller no longer waits.
    pub fn reassigned(&self) -> Vec<(&IdempotencyKey, KeyUse)> {
        let reassigned = self.keys.iter().filter_map(|(key, entry)| {
            let (digest, assignment) = entry.used_by.as_ref().filter(|_| entry.is_new)?;
            let key_use = KeyUse { digest: *digest, document_id: assignment.document_id };
            (key_use != entry.first_use).then_some((key, key_use))
        });
        reassigned.collect()
    }
}

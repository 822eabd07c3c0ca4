//! The log of requests and answers that clients keep, and the checks of it: no number twice, none out of order, no
//! unexplained gap. Owns the log and its logical clock. Must never ask a server or a store: only the log counts.

mod check;
mod violation;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use check::{Gaps, Rules, check};
pub use violation::Violation;

/// A scope, numbered in the order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(pub u32);

/// An answer with consecutive numbers. An answer with several ranges has several entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The scope of the numbers.
    pub scope: Scope,
    /// The client that asked.
    pub client: u32,
    /// The time of the request, on the clock of the history.
    pub asked: u64,
    /// The time of the answer. Invariant: it is smaller than the time of a request if and only if it came before.
    pub answered: u64,
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
}

/// Numbers that no client got, for a known reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedGap {
    /// The scope of the numbers.
    pub scope: Scope,
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
}

/// A history that many clients write together. Cheap to clone.
#[derive(Clone, Default)]
pub struct History(Arc<Shared>);

#[derive(Default)]
struct Shared {
    clock: AtomicU64,
    collected: Mutex<Collected>,
}

#[derive(Default)]
struct Collected {
    scopes: HashMap<String, Scope>,
    clients: u32,
    entries: Vec<Entry>,
    explained: Vec<ExplainedGap>,
}

/// The entries of one client, kept without locking; added to the history when dropped.
pub struct Client {
    history: History,
    id: u32,
    entries: Vec<Entry>,
}

/// A request without an answer yet. One that is never answered adds no entry.
#[derive(Clone, Copy, Debug)]
#[must_use = "an answer is recorded with its request"]
pub struct PendingRequest {
    scope: Scope,
    at: u64,
}

impl History {
    /// A new client that writes to this history.
    pub fn client(&self) -> Client {
        let mut collected = self.collected();
        collected.clients += 1;
        Client { history: self.clone(), id: collected.clients, entries: Vec::new() }
    }

    /// The scope with this name.
    pub fn scope(&self, name: &str) -> Scope {
        let mut collected = self.collected();
        let next = Scope(u32::try_from(collected.scopes.len()).expect("far fewer than 2^32 scopes"));
        *collected.scopes.entry(name.to_owned()).or_insert(next)
    }

    /// Records an explained gap.
    pub fn explain(&self, scope: Scope, first: u64, last: u64) {
        self.collected().explained.push(ExplainedGap { scope, first, last });
    }

    /// How many entries were added.
    pub fn len(&self) -> usize {
        self.collected().entries.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The violations of the rules in all entries added so far.
    pub fn check(&self, rules: Rules) -> Vec<Violation> {
        let collected = self.collected();
        check(&collected.entries, &collected.explained, rules)
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders the events of all threads.
    fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::SeqCst)
    }
}

impl Client {
    /// Call this before the request is sent.
    pub fn ask(&self, scope: Scope) -> PendingRequest {
        PendingRequest { scope, at: self.history.tick() }
    }

    /// Call this when the answer has arrived.
    pub fn answered(&mut self, request: PendingRequest, first: u64, last: u64) {
        self.answered_with(request, [(first, last)]);
    }

    /// The same for an answer with several ranges.
    pub fn answered_with(&mut self, request: PendingRequest, ranges: impl IntoIterator<Item = (u64, u64)>) {
        let answered = self.history.tick();
        let PendingRequest { scope, at } = request;
        self.entries.extend(ranges.into_iter().map(|(first, last)| {
            assert!(first <= last, "invalid range from {first} to {last}");
            Entry { scope, client: self.id, asked: at, answered, first, last }
        }));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.history.collected().entries.append(&mut self.entries);
    }
}

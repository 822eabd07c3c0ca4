//! What clients asked and were answered, and what follows from it: no number twice, none that falls, no gap that
//! nobody accounts for. Owns the log and its logical clock. Must never ask a server or a store: the verdict is
//! from the clients' own words.

mod check;
mod violation;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use check::{Gaps, Rules, check};
pub use violation::Violation;

/// A scope, by the order in which scopes were first named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(pub u32);

/// One answer with numbers that follow each other. An answer of several such ranges is several entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub scope: Scope,
    /// Who asked.
    pub client: u32,
    /// When it was asked for, on the history's clock.
    pub asked: u64,
    /// When the answer was there. Invariant: an answer came before a question if and only if its time is smaller.
    pub answered: u64,
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
}

/// Numbers that nobody was given, and why is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Where.
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
    explained: Vec<Explained>,
}

/// A client's own part of the history, which nobody else waits for; handed in when dropped.
pub struct Client {
    history: History,
    id: u32,
    entries: Vec<Entry>,
}

/// A question that is under way. One that is never answered claims nothing.
#[derive(Clone, Copy, Debug)]
#[must_use = "an answer is noted with its question"]
pub struct Asked {
    scope: Scope,
    at: u64,
}

impl History {
    /// A client that writes along.
    pub fn client(&self) -> Client {
        let mut collected = self.collected();
        collected.clients += 1;
        Client { history: self.clone(), id: collected.clients, entries: Vec::new() }
    }

    /// The scope of that name.
    pub fn scope(&self, name: &str) -> Scope {
        let mut collected = self.collected();
        let next = Scope(u32::try_from(collected.scopes.len()).expect("far fewer than 2^32 scopes"));
        *collected.scopes.entry(name.to_owned()).or_insert(next)
    }

    /// Notes that these numbers are a gap, and known to be one.
    pub fn explain(&self, scope: Scope, first: u64, last: u64) {
        self.collected().explained.push(Explained { scope, first, last });
    }

    /// How many answers were handed in.
    pub fn len(&self) -> usize {
        self.collected().entries.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What contradicts the rules, of all that was handed in; empty if nothing does.
    pub fn check(&self, rules: Rules) -> Vec<Violation> {
        let collected = self.collected();
        check(&collected.entries, &collected.explained, rules)
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One order for all threads, which is what "before" means.
    fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::SeqCst)
    }
}

impl Client {
    /// To be called before the question is sent.
    pub fn ask(&self, scope: Scope) -> Asked {
        Asked { scope, at: self.history.tick() }
    }

    /// To be called when the answer is there.
    pub fn answered(&mut self, asked: Asked, first: u64, last: u64) {
        self.answered_with(asked, [(first, last)]);
    }

    /// An answer of several ranges.
    pub fn answered_with(&mut self, asked: Asked, ranges: impl IntoIterator<Item = (u64, u64)>) {
        let answered = self.history.tick();
        let Asked { scope, at } = asked;
        self.entries.extend(ranges.into_iter().map(|(first, last)| {
            assert!(first <= last, "a range from {first} to {last} is none");
            Entry { scope, client: self.id, asked: at, answered, first, last }
        }));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.history.collected().entries.append(&mut self.entries);
    }
}

//! What is held in advance: chunks in shards, from which threads take without a lock, and the rest behind one.
//!
//! Invariant: a position is in one place: a shard, the pieces, or handed out. What is given back was taken out of here
//! first, under the lock, and closed shards with it.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use crate::behind::{Behind, Lease, count, stretches};
use crate::moment::Moment;
use crate::shard::Shard;
use crate::size::Prefetch;
use crate::source::{Given, Numbers};

/// Shards: threads beyond share them.
pub(crate) const SHARDS: usize = 8;

/// What is held in advance.
pub(crate) struct Buffer {
    shards: [Shard; SHARDS],
    behind: Mutex<Behind>,
}

/// A number that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Its position, from which it is rendered.
    Position(u64),
    /// What came written.
    Written(Box<Written>),
}

/// A number that came written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) lease: Uuid,
    pub(crate) text: Box<str>,
    /// Its position is the last of these; those before it are no numbers, because the rules reject them.
    pub(crate) stretch: Range<u64>,
}

impl Written {
    pub(crate) fn position(&self) -> u64 {
        self.stretch.end - 1
    }

    /// Numbers of a lease, each with what lies between it and the one before in the same range.
    fn all_of(
        lease: Uuid,
        numbers: Vec<(u64, Box<str>)>,
        ranges: Vec<Range<u64>>,
    ) -> impl Iterator<Item = Self> {
        let (mut after, mut ranges) = (None, ranges.into_iter().peekable());
        numbers.into_iter().map(move |(position, text)| {
            // What lies between two ranges is not of this lease.
            while ranges.next_if(|range| range.end <= position).is_some() {
                after = None;
            }
            let start = after.filter(|start| *start <= position).unwrap_or(position);
            after = Some(position + 1);
            Self { lease, text, stretch: start..position + 1 }
        })
    }
}

/// What is left of a lease that ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) lease: Uuid,
    pub(crate) unused: Vec<Range<u64>>,
    /// How many numbers that is: fewer than positions where rules reject some.
    pub(crate) numbers: u64,
}

/// What came of taking where the shard had nothing.
pub(crate) struct Slow {
    pub(crate) held: Option<Held>,
    /// Whether it is time for more.
    pub(crate) is_low: bool,
    pub(crate) is_closed: bool,
}

thread_local! {
    /// Which shard a thread takes from.
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[cold]
fn first_shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let shard = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
    SHARD.with(|own| own.set(shard));
    shard
}

#[inline]
fn own_shard() -> usize {
    let shard = SHARD.with(Cell::get);
    if shard < SHARDS { shard } else { first_shard() }
}

impl Rest {
    /// A lease of which nothing was used.
    pub(crate) fn all_of(given: Given) -> Self {
        let (numbers, unused) = match given.numbers {
            Numbers::Positions(ranges, _) => (count(&ranges), ranges),
            Numbers::Written(written, ranges) => (
                written.len() as u64,
                stretches(Written::all_of(given.lease, written, ranges).map(|written| written.stretch)),
            ),
        };
        Self { lease: given.lease, unused, numbers }
    }
}

impl Buffer {
    pub(crate) fn new(bounds: Prefetch) -> Self {
        Self { shards: std::array::from_fn(|_| Shard::new()), behind: Mutex::new(Behind::new(bounds)) }
    }

    /// A position of the thread's own shard. `None` means that the caller must go on with [`Buffer::take_behind`].
    #[inline]
    pub(crate) fn take(&self) -> Option<u64> {
        self.shards[own_shard()].take()
    }

    /// The rest of [`Buffer::take`]: a new chunk for the shard, or what other shards have, or a number that came
    /// written.
    #[cold]
    pub(crate) fn take_behind(&self, now: impl Fn() -> Moment) -> Slow {
        let mut behind = self.behind.lock();
        let held = behind.take(&self.shards, own_shard(), now);
        let is_low = behind.size.is_low(behind.left(&self.shards));
        Slow { held, is_low, is_closed: behind.is_closed }
    }

    /// How many numbers are at hand.
    pub(crate) fn left(&self) -> u64 {
        self.behind.lock().left(&self.shards)
    }

    /// How many to ask for, if it is time, and which leases were used to the last.
    pub(crate) fn refill(&self, now: Moment, waited_for: u64) -> Option<(u64, Vec<Uuid>)> {
        let mut behind = self.behind.lock();
        behind.set_outdated_aside(now);
        let left = behind.left(&self.shards);
        if behind.is_closed || waited_for <= left && !behind.size.is_low(left) {
            return None;
        }
        let used = behind.used(&self.shards);
        Some((behind.size.ask(now.steady, left, waited_for), used))
    }

    /// Holds what was leased at that moment, and forgets the leases that were used. If it was closed meanwhile, what was
    /// leased is the rest that has to be given back.
    pub(crate) fn add(&self, given: Given, asked: Moment, used: &[Uuid]) -> Result<(), Rest> {
        let mut behind = self.behind.lock();
        behind.leases.retain(|lease| !used.contains(&lease.id));
        if behind.is_closed {
            return Err(Rest::all_of(given));
        }
        let Given { lease: id, numbers, good_for } = given;
        let (ranges, written, around) = match numbers {
            Numbers::Positions(ranges, _) => (ranges, Vec::new(), Vec::new()),
            Numbers::Written(written, around) => (Vec::new(), written, around),
        };
        behind.size.refilled(asked.steady);
        behind.pieces.extend(ranges.iter().cloned());
        behind.written.extend(Written::all_of(id, written, around).map(Box::new));
        behind.leases.push(Lease { id, since: asked, good_for, ranges });
        Ok(())
    }

    /// So many numbers at once, or none if there are fewer. Whether it is time for more.
    pub(crate) fn take_all(&self, count: usize, now: Moment) -> (Option<Vec<Held>>, bool) {
        let mut behind = self.behind.lock();
        behind.set_outdated_aside(now);
        // Invariant: counted when nobody can take without the lock, so that all of them are there.
        behind.gather(&self.shards);
        let left = behind.left(&self.shards);
        let taken = (!behind.is_closed && count as u64 <= left).then(|| behind.take_behind(count));
        let left = behind.left(&self.shards);
        (taken, behind.size.is_low(left))
    }

    /// What is no longer good, or was held since that moment or longer: it is taken out, to be given back.
    pub(crate) fn outdated(&self, now: Moment, since: Option<Instant>) -> Vec<Rest> {
        let mut behind = self.behind.lock();
        behind.set_outdated_aside(now);
        let old = |lease: &Lease| since.is_some_and(|since| lease.since.steady <= since);
        if behind.leases.iter().any(old) {
            behind.gather(&self.shards);
            let (old, kept) = std::mem::take(&mut behind.leases).into_iter().partition(old);
            behind.leases = kept;
            behind.set_aside(old);
        }
        std::mem::take(&mut behind.outdated)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.behind.lock().is_closed
    }

    /// Since when the oldest of what is held is.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.behind.lock().leases.iter().map(|lease| lease.since.steady).min()
    }

    /// Takes everything out, to be given back. Nothing is handed out any more. `None` if it was closed before.
    pub(crate) fn close(&self) -> Option<Vec<Rest>> {
        let mut behind = self.behind.lock();
        if std::mem::replace(&mut behind.is_closed, true) {
            return None;
        }
        behind.gather(&self.shards);
        let all = std::mem::take(&mut behind.leases);
        behind.set_aside(all);
        Some(std::mem::take(&mut behind.outdated))
    }
}

//! The prefetched numbers: chunks in shards, from which threads take without a lock, and the rest behind one.
//!
//! Invariant: a position is in one place: a shard, the pieces, or handed out. What is given back was taken out first,
//! under the lock, with its shards closed.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::behind::{Behind, Lease, Moment, count, stretches};
use crate::number::{Held, Written, half_open, position};
use crate::shard::Shard;
use crate::size::Prefetch;
use crate::source::{Given, Numbers, Source};

/// More threads than this share shards.
const SHARDS: usize = 8;
pub(crate) type Shards = [Shard; SHARDS];

pub(crate) struct Buffer {
    shards: Shards,
    behind: Mutex<Behind>,
    /// Notified when it is time to refill.
    pub(crate) wanted: Arc<Notify>,
}

/// The rest of an ended lease.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) lease: Uuid,
    pub(crate) unused: Vec<Range<u64>>,
    /// Fewer than the positions where rules reject some.
    pub(crate) numbers: u64,
}

thread_local! {
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
    /// An unused lease.
    pub(crate) fn all_of(Given { lease, numbers, .. }: Given) -> Self {
        let (numbers, unused) = match numbers {
            Numbers::Positions(ranges, _) => {
                let ranges: Vec<Range<u64>> = ranges.iter().map(half_open).collect();
                (count(&ranges), ranges)
            }
            Numbers::Written(written, ranges) => (
                written.len() as u64,
                stretches(Written::all_of(lease, written, ranges).map(|written| written.stretch)),
            ),
        };
        Self { lease, unused, numbers }
    }

    /// Reports it, and answers its numbers. If that fails, they are uncertain after a day.
    pub(crate) async fn give_back<S: Source>(self, source: &S) -> Result<u64, S::Error> {
        let positions = |range: Range<u64>| position(range.start)..=position(range.end - 1);
        source.give_back(self.lease, self.unused.into_iter().map(positions).collect()).await?;
        Ok(self.numbers)
    }
}

impl Buffer {
    pub(crate) fn new(bounds: Prefetch) -> Self {
        let shards = std::array::from_fn(|_| Shard::new());
        Self { shards, behind: Mutex::new(Behind::new(bounds)), wanted: Arc::default() }
    }

    /// From the thread's own shard. After `None` the caller must go on with [`Buffer::take_behind`].
    #[inline]
    pub(crate) fn take(&self) -> Option<u64> {
        self.shards[own_shard()].take()
    }

    /// From a new chunk for the shard, from other shards, or a written number.
    #[cold]
    pub(crate) fn take_behind(&self, now: impl Fn() -> Moment) -> Option<Held> {
        let mut behind = self.behind.lock();
        let held = behind.take(&self.shards, own_shard(), now);
        if !behind.is_closed && behind.is_low(&self.shards) {
            self.wanted.notify_one();
        }
        held
    }

    /// `count` numbers at once, or none if there are fewer.
    pub(crate) fn take_all(&self, count: usize, now: Moment) -> Option<Vec<Held>> {
        let mut behind = self.behind.lock();
        behind.set_outdated_aside(now);
        // Invariant: counted while all shards are closed, so that no thread can take without the lock.
        behind.gather(&self.shards);
        if behind.is_closed || behind.left(&self.shards) < count as u64 {
            return None;
        }
        let taken = behind.take_behind(count);
        if behind.is_low(&self.shards) {
            self.wanted.notify_one();
        }
        Some(taken)
    }

    pub(crate) fn left(&self) -> u64 {
        self.behind.lock().left(&self.shards)
    }

    /// How many to ask for, if it is time, and which leases are used up.
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

    /// Adds a lease and forgets the used ones. If the buffer is closed, answers what to give back.
    pub(crate) fn add(&self, given: Given, asked: Moment, used: &[Uuid]) -> Result<(), Rest> {
        let mut behind = self.behind.lock();
        behind.leases.retain(|lease| !used.contains(&lease.id));
        if behind.is_closed {
            return Err(Rest::all_of(given));
        }
        let Given { lease: id, numbers, good_for } = given;
        let mut ranges = Vec::new();
        match numbers {
            Numbers::Positions(positions, _) => ranges.extend(positions.iter().map(half_open)),
            Numbers::Written(written, around) => {
                behind.written.extend(Written::all_of(id, written, around).map(Box::new));
            }
        }
        behind.size.refilled(asked.steady);
        behind.pieces.extend(ranges.iter().cloned());
        behind.leases.push(Lease { id, since: asked, good_for, ranges });
        Ok(())
    }

    /// Takes out leases that are outdated or not younger than `since`, to be given back.
    pub(crate) fn outdated(&self, now: Moment, since: Option<Instant>) -> Vec<Rest> {
        let mut behind = self.behind.lock();
        behind.set_outdated_aside(now);
        let is_old = |lease: &Lease| since.is_some_and(|since| lease.since.steady <= since);
        if behind.leases.iter().any(is_old) {
            behind.gather(&self.shards);
            behind.set_aside(is_old);
        }
        std::mem::take(&mut behind.outdated)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.behind.lock().is_closed
    }

    /// When the oldest lease was asked for.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.behind.lock().leases.iter().map(|lease| lease.since.steady).min()
    }

    /// Takes everything out, to be given back. `None` if it was closed before.
    pub(crate) fn close(&self) -> Option<Vec<Rest>> {
        let mut behind = self.behind.lock();
        if std::mem::replace(&mut behind.is_closed, true) {
            return None;
        }
        behind.gather(&self.shards);
        behind.set_aside(|_| true);
        Some(std::mem::take(&mut behind.outdated))
    }
}

//! The prefetched numbers: chunks in shards, from which threads take without a lock, and a reserve behind a lock.
//!
//! Invariant: a position is in one place: a shard, the reserve, or handed out. Positions are taken out under the lock,
//! with all shards closed, before they are given back.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::number::{HeldNumber, WrittenNumber, half_open, position};
use crate::reserve::{HeldLease, Moment, Reserve, count, join_adjacent};
use crate::shard::Shard;
use crate::size::Prefetch;
use crate::source::{Lease, LeaseContent, Source};

/// If there are more threads, they share shards.
const SHARDS: usize = 8;
pub(crate) type Shards = [Shard; SHARDS];

pub(crate) struct Buffer {
    shards: Shards,
    reserve: Mutex<Reserve>,
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
    /// A lease that was not used at all.
    pub(crate) fn all_of(Lease { id: lease, content, .. }: Lease) -> Self {
        let (numbers, unused) = match content {
            LeaseContent::Ranges(ranges, _) => {
                let ranges: Vec<Range<u64>> = ranges.iter().map(half_open).collect();
                (count(&ranges), ranges)
            }
            LeaseContent::Numbers(written, ranges) => {
                let numbers = written.len() as u64;
                let written = WrittenNumber::all_of(lease, written, ranges);
                (numbers, join_adjacent(written.map(|written| written.positions)))
            }
        };
        Self { lease, unused, numbers }
    }

    /// Reports it, and answers how many numbers it has. If that fails, they are uncertain after a day.
    pub(crate) async fn give_back<S: Source>(self, source: &S) -> Result<u64, S::Error> {
        let positions = |range: Range<u64>| position(range.start)..=position(range.end - 1);
        source.give_back(self.lease, self.unused.into_iter().map(positions).collect()).await?;
        Ok(self.numbers)
    }
}

impl Buffer {
    pub(crate) fn new(bounds: Prefetch) -> Self {
        let shards = std::array::from_fn(|_| Shard::new());
        Self { shards, reserve: Mutex::new(Reserve::new(bounds)), wanted: Arc::default() }
    }

    /// From the thread's own shard. After `None` the caller must go on with [`Buffer::take_from_reserve`].
    #[inline]
    pub(crate) fn take(&self) -> Option<u64> {
        self.shards[own_shard()].take()
    }

    /// From a new chunk for the shard, from other shards, or a written number.
    #[cold]
    pub(crate) fn take_from_reserve(&self, now: impl Fn() -> Moment) -> Option<HeldNumber> {
        let mut reserve = self.reserve.lock();
        let held = reserve.take(&self.shards, own_shard(), now);
        if !reserve.is_closed && reserve.is_low(&self.shards) {
            self.wanted.notify_one();
        }
        held
    }

    /// `count` numbers at once, or `None` if fewer are left; with `or_fewer`, as many as are left, if any.
    pub(crate) fn take_many(&self, count: usize, or_fewer: bool, now: Moment) -> Option<Vec<HeldNumber>> {
        let mut reserve = self.reserve.lock();
        reserve.return_outdated(now);
        // Invariant: counted while all shards are closed, so that no thread can take without the lock.
        reserve.gather(&self.shards);
        let left = reserve.left(&self.shards);
        if reserve.is_closed || left < if or_fewer { 1 } else { count as u64 } {
            return None;
        }
        let taken = reserve.take_many(count);
        if reserve.is_low(&self.shards) {
            self.wanted.notify_one();
        }
        Some(taken)
    }

    pub(crate) fn left(&self) -> u64 {
        self.reserve.lock().left(&self.shards)
    }

    /// How many numbers to lease, if it is time, and which leases are used up.
    pub(crate) fn refill(&self, now: Moment, waited_for: u64) -> Option<(u64, Vec<Uuid>)> {
        let mut reserve = self.reserve.lock();
        reserve.return_outdated(now);
        let left = reserve.left(&self.shards);
        if reserve.is_closed || waited_for <= left && !reserve.size.is_low(left) {
            return None;
        }
        let used = reserve.used(&self.shards);
        Some((reserve.size.ask(now.steady, left, waited_for), used))
    }

    /// Adds a lease and forgets the used ones. If the buffer is closed, answers with the lease to give back.
    pub(crate) fn add(&self, added: Lease, asked: Moment, used: &[Uuid]) -> Result<(), Rest> {
        let mut reserve = self.reserve.lock();
        reserve.leases.retain(|lease| !used.contains(&lease.id));
        if reserve.is_closed {
            return Err(Rest::all_of(added));
        }
        let Lease { id, content, valid_for } = added;
        let mut ranges = Vec::new();
        match content {
            LeaseContent::Ranges(positions, _) => ranges.extend(positions.iter().map(half_open)),
            LeaseContent::Numbers(written, around) => {
                reserve.written.extend(WrittenNumber::all_of(id, written, around).map(Box::new));
            }
        }
        reserve.size.refilled(asked.steady);
        reserve.pieces.extend(ranges.iter().cloned());
        reserve.leases.push(HeldLease { id, since: asked, valid_for, ranges });
        Ok(())
    }

    /// Takes out leases that are outdated or not younger than `since`, to be given back.
    pub(crate) fn outdated(&self, now: Moment, since: Option<Instant>) -> Vec<Rest> {
        let mut reserve = self.reserve.lock();
        reserve.return_outdated(now);
        let is_old = |lease: &HeldLease| since.is_some_and(|since| lease.since.steady <= since);
        if reserve.leases.iter().any(is_old) {
            reserve.gather(&self.shards);
            reserve.return_where(is_old);
        }
        std::mem::take(&mut reserve.outdated)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.reserve.lock().is_closed
    }

    /// When the oldest lease was requested.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.reserve.lock().leases.iter().map(|lease| lease.since.steady).min()
    }

    /// Takes everything out, to be given back. `None` if it was closed before.
    pub(crate) fn close(&self) -> Option<Vec<Rest>> {
        let mut reserve = self.reserve.lock();
        if std::mem::replace(&mut reserve.is_closed, true) {
            return None;
        }
        reserve.gather(&self.shards);
        reserve.return_where(|_| true);
        Some(std::mem::take(&mut reserve.outdated))
    }
}

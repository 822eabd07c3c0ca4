//! The locked part of the buffer: positions in no shard, rendered numbers, and their leases.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use uuid::Uuid;

use crate::buffer::{Rest, Shards};
use crate::number::{HeldNumber, WrittenNumber};
use crate::shard::{CHUNK_MAX, Shard};
use crate::size::{Prefetch, Size};

/// A shard gets one quarter of a piece.
const SHARE: u64 = 4;

pub(crate) struct Reserve {
    /// Positions that are in no shard.
    pub(crate) pieces: VecDeque<Range<u64>>,
    pub(crate) written: VecDeque<Box<WrittenNumber>>,
    pub(crate) leases: Vec<HeldLease>,
    pub(crate) outdated: Vec<Rest>,
    pub(crate) size: Size,
    pub(crate) is_closed: bool,
}

pub(crate) struct HeldLease {
    pub(crate) id: Uuid,
    pub(crate) since: Moment,
    pub(crate) valid_for: Option<Duration>,
    /// Empty if the source rendered its numbers.
    pub(crate) ranges: Vec<Range<u64>>,
}

/// A moment on two clocks. The steady clock stops while the machine sleeps; the wall clock may be set forward or back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) steady: Instant,
    pub(crate) wall: SystemTime,
}

impl Moment {
    /// Whether `time` has passed on either clock. A wall clock that was set back counts as passed: the numbers may be of a
    /// day that has not begun.
    fn is_past(self, since: Self, time: Duration) -> bool {
        self.steady.saturating_duration_since(since.steady) >= time
            || self.wall.duration_since(since.wall).map_or(true, |passed| passed >= time)
    }
}

impl Reserve {
    pub(crate) fn new(bounds: Prefetch) -> Self {
        let (pieces, written, leases, outdated) = Default::default();
        Self { pieces, written, leases, outdated, size: Size::new(bounds), is_closed: false }
    }

    /// A number, and a chunk for the shard of the thread that takes it.
    pub(crate) fn take(
        &mut self,
        shards: &Shards,
        at: usize,
        now: impl Fn() -> Moment,
    ) -> Option<HeldNumber> {
        // Invariant: always, also in a closed buffer, to reset subtractions in vain. Another thread may have opened it.
        self.pieces.extend(shards[at].close());
        if self.is_closed {
            return None;
        }
        if self.leases.iter().any(|lease| lease.valid_for.is_some()) {
            self.return_outdated(now());
        }
        if self.pieces.is_empty() {
            self.gather(shards);
        }
        let Some(piece) = self.pieces.front_mut() else {
            return self.written.pop_front().map(HeldNumber::Written);
        };
        let (from, length) = (piece.start, piece.end - piece.start);
        let mut chunk = from + 1..from + (length / SHARE).clamp(1, CHUNK_MAX);
        if chunk.is_empty() || !shards[at].can_hold(&chunk) {
            chunk.end = chunk.start;
        } else {
            shards[at].open(&chunk);
        }
        piece.start = chunk.end;
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        Some(HeldNumber::Position(from))
    }

    /// `count` numbers that are in no shard; fewer if there are fewer.
    pub(crate) fn take_many(&mut self, count: usize) -> Vec<HeldNumber> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count
            && let Some(mut piece) = self.pieces.pop_front()
        {
            taken.extend(piece.by_ref().take(count - taken.len()).map(HeldNumber::Position));
            if !piece.is_empty() {
                self.pieces.push_front(piece);
            }
        }
        let written = self.written.drain(..(count - taken.len()).min(self.written.len()));
        taken.extend(written.map(HeldNumber::Written));
        taken
    }

    pub(crate) fn gather(&mut self, shards: &Shards) {
        self.pieces.extend(shards.iter().filter_map(Shard::close));
    }

    pub(crate) fn left(&self, shards: &Shards) -> u64 {
        let in_shards: u64 = shards.iter().filter_map(Shard::left).map(|range| count([&range])).sum();
        in_shards + count(&self.pieces) + self.written.len() as u64
    }

    pub(crate) fn is_low(&self, shards: &Shards) -> bool {
        self.size.is_low(self.left(shards))
    }

    /// The leases with no numbers left.
    pub(crate) fn used(&self, shards: &Shards) -> Vec<Uuid> {
        let in_shards = shards.iter().filter_map(Shard::left);
        let left: Vec<Range<u64>> = in_shards.chain(self.pieces.iter().cloned()).collect();
        let is_left = |lease: &&HeldLease| {
            let mut ranges = lease.ranges.iter();
            ranges.any(|range| left.iter().any(|left| left.start < range.end && range.start < left.end))
                || self.written.iter().any(|written| written.lease == lease.id)
        };
        self.leases.iter().filter(|lease| !is_left(lease)).map(|lease| lease.id).collect()
    }

    pub(crate) fn return_outdated(&mut self, now: Moment) {
        self.return_where(|lease| lease.valid_for.is_some_and(|time| now.is_past(lease.since, time)));
    }

    /// Ends these leases and takes out their unused numbers. Their positions must be in no shard.
    pub(crate) fn return_where(&mut self, is_over: impl Fn(&HeldLease) -> bool) {
        let over: Vec<HeldLease> = self.leases.extract_if(.., |lease| is_over(lease)).collect();
        for HeldLease { id, ranges, .. } in over {
            let (mut unused, mut kept) = (Vec::new(), VecDeque::new());
            for piece in self.pieces.drain(..) {
                let (within, outside) = split(&piece, &ranges);
                unused.extend(within);
                kept.extend(outside);
            }
            self.pieces = kept;
            let of_lease = self.written.iter().filter(|written| written.lease == id);
            let written: Vec<Range<u64>> = of_lease.map(|written| written.positions.clone()).collect();
            self.written.retain(|written| written.lease != id);
            let numbers = count(&unused) + written.len() as u64;
            unused.extend(join_adjacent(written.into_iter()));
            self.outdated.push(Rest { lease: id, unused, numbers });
        }
    }
}

pub(crate) fn count<'r>(ranges: impl IntoIterator<Item = &'r Range<u64>>) -> u64 {
    ranges.into_iter().map(|range| range.end - range.start).sum()
}

/// Joins ranges that touch.
pub(crate) fn join_adjacent(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// The parts of a piece within and outside the ranges.
fn split(piece: &Range<u64>, ranges: &[Range<u64>]) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let within = ranges.iter().map(|range| piece.start.max(range.start)..piece.end.min(range.end));
    let mut within: Vec<Range<u64>> = within.filter(|part| !part.is_empty()).collect();
    within.sort_unstable_by_key(|part| part.start);
    let starts = std::iter::once(piece.start).chain(within.iter().map(|part| part.end));
    let ends = within.iter().map(|part| part.start).chain([piece.end]);
    let outside = starts.zip(ends).map(|(from, to)| from..to).filter(|gap| !gap.is_empty()).collect();
    (within, outside)
}

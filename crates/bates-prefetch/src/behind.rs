//! What lies behind the lock of the buffer: pieces that are in no shard, numbers that came written, and of which leases
//! they are.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use uuid::Uuid;

use crate::buffer::{Held, Rest, SHARDS, Written};
use crate::moment::Moment;
use crate::shard::{CHUNK_MAX, Shard};
use crate::size::{Prefetch, Size};

/// Of a piece, a shard gets one in so many.
const SHARE: u64 = 4;

pub(crate) struct Behind {
    /// Positions that are in no shard.
    pub(crate) pieces: VecDeque<Range<u64>>,
    /// Numbers that came written.
    pub(crate) written: VecDeque<Box<Written>>,
    pub(crate) leases: Vec<Lease>,
    /// What is no longer good, and has to be given back.
    pub(crate) outdated: Vec<Rest>,
    pub(crate) size: Size,
    pub(crate) is_closed: bool,
}

pub(crate) struct Lease {
    pub(crate) id: Uuid,
    pub(crate) since: Moment,
    /// For how long its numbers are good; `None` for ever.
    pub(crate) good_for: Option<Duration>,
    /// Its positions, unless its numbers came written.
    pub(crate) ranges: Vec<Range<u64>>,
}

impl Behind {
    pub(crate) fn new(bounds: Prefetch) -> Self {
        Self {
            pieces: VecDeque::new(),
            written: VecDeque::new(),
            leases: Vec::new(),
            outdated: Vec::new(),
            size: Size::new(bounds),
            is_closed: false,
        }
    }

    /// A number, and a chunk for the shard of the thread that takes it.
    pub(crate) fn take(
        &mut self,
        shards: &[Shard; SHARDS],
        at: usize,
        now: impl Fn() -> Moment,
    ) -> Option<Held> {
        // Invariant: always, so that subtractions in vain are forgotten, also in a buffer that is closed. Another thread
        // may have opened the shard meanwhile.
        self.pieces.extend(shards[at].close());
        if self.is_closed {
            return None;
        }
        if self.leases.iter().any(|lease| lease.good_for.is_some()) {
            self.set_outdated_aside(now());
        }
        if self.pieces.is_empty() {
            self.gather(shards);
        }
        let Some(piece) = self.pieces.front_mut() else {
            return self.written.pop_front().map(Held::Written);
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
        Some(Held::Position(from))
    }

    /// So many of what is in no shard, where there are as many.
    pub(crate) fn take_behind(&mut self, count: usize) -> Vec<Held> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count
            && let Some(mut piece) = self.pieces.pop_front()
        {
            taken.extend(piece.by_ref().take(count - taken.len()).map(Held::Position));
            if !piece.is_empty() {
                self.pieces.push_front(piece);
            }
        }
        let written = self.written.drain(..(count - taken.len()).min(self.written.len()));
        taken.extend(written.map(Held::Written));
        taken
    }

    /// Closes all shards.
    pub(crate) fn gather(&mut self, shards: &[Shard; SHARDS]) {
        self.pieces.extend(shards.iter().filter_map(Shard::close));
    }

    /// How many numbers are at hand.
    pub(crate) fn left(&self, shards: &[Shard; SHARDS]) -> u64 {
        let in_shards: u64 = shards.iter().filter_map(Shard::left).map(|range| count([&range])).sum();
        in_shards + count(&self.pieces) + self.written.len() as u64
    }

    /// The leases of which nothing is left.
    pub(crate) fn used(&self, shards: &[Shard; SHARDS]) -> Vec<Uuid> {
        let in_shards = shards.iter().filter_map(Shard::left);
        let left: Vec<Range<u64>> = in_shards.chain(self.pieces.iter().cloned()).collect();
        let is_left = |lease: &&Lease| {
            let mut ranges = lease.ranges.iter();
            ranges.any(|range| left.iter().any(|left| left.start < range.end && range.start < left.end))
                || self.written.iter().any(|written| written.lease == lease.id)
        };
        self.leases.iter().filter(|lease| !is_left(lease)).map(|lease| lease.id).collect()
    }

    /// Only numbers that came written get out of date.
    pub(crate) fn set_outdated_aside(&mut self, now: Moment) {
        let is_over =
            |lease: &Lease| lease.good_for.is_some_and(|good_for| now.is_past(lease.since, good_for));
        if self.leases.iter().any(is_over) {
            let (over, kept) = std::mem::take(&mut self.leases).into_iter().partition(is_over);
            self.leases = kept;
            self.set_aside(over);
        }
    }

    /// Takes what is left of these leases out, which are no longer among the others. Their positions are in no shard.
    pub(crate) fn set_aside(&mut self, leases: Vec<Lease>) {
        for Lease { id, ranges, .. } in leases {
            let (mut unused, mut kept) = (Vec::new(), VecDeque::new());
            for piece in self.pieces.drain(..) {
                let (within, outside) = split(&piece, &ranges);
                unused.extend(within);
                kept.extend(outside);
            }
            self.pieces = kept;
            let mut numbers = count(&unused);
            let of_lease = self.written.iter().filter(|written| written.lease == id);
            unused
                .extend(stretches(of_lease.inspect(|_| numbers += 1).map(|written| written.stretch.clone())));
            self.written.retain(|written| written.lease != id);
            self.outdated.push(Rest { lease: id, unused, numbers });
        }
    }
}

/// How many positions ranges hold.
pub(crate) fn count<'r>(ranges: impl IntoIterator<Item = &'r Range<u64>>) -> u64 {
    ranges.into_iter().map(|range| range.end - range.start).sum()
}

/// Stretches as ranges, those that touch as one.
pub(crate) fn stretches(each: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for stretch in each {
        match joined.last_mut() {
            Some(last) if last.end == stretch.start => last.end = stretch.end,
            _ => joined.push(stretch),
        }
    }
    joined
}

/// The parts of a piece that lie within ranges, and those that do not.
fn split(piece: &Range<u64>, ranges: &[Range<u64>]) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let mut within: Vec<Range<u64>> = ranges
        .iter()
        .map(|range| piece.start.max(range.start)..piece.end.min(range.end))
        .filter(|part| part.start < part.end)
        .collect();
    within.sort_unstable_by_key(|part| part.start);
    let (mut outside, mut at) = (Vec::new(), piece.start);
    for part in &within {
        if at < part.start {
            outside.push(at..part.start);
        }
        at = part.end;
    }
    if at < piece.end {
        outside.push(at..piece.end);
    }
    (within, outside)
}

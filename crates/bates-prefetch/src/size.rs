//! How many numbers are prefetched: few at first, more while they are used up quickly, fewer again later. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A refill sooner than this doubles the size, one later than that halves it.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(10);

/// The default limit, as a multiple of the first size.
const GROWTH: u64 = 100;

/// Max numbers asked for at once.
const COUNT_MAX: u64 = 1_000_000;

/// How many numbers to prefetch: the most that a crash can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    least: u64,
    most: u64,
}

impl Prefetch {
    /// `count` at first, and up to a hundred times as many while they are used up within a second; 1 to 1,000,000.
    pub fn new(count: u64) -> Self {
        let least = count.clamp(1, COUNT_MAX);
        Self { least, most: (least * GROWTH).min(COUNT_MAX) }
    }

    /// At most this many, except for callers that take more at once and wait for them.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        let most = most.clamp(1, COUNT_MAX);
        Self { least: self.least.min(most), most }
    }
}

impl From<u64> for Prefetch {
    fn from(count: u64) -> Self {
        Self::new(count)
    }
}

#[derive(Debug)]
pub(crate) struct Size {
    bounds: Prefetch,
    now: u64,
    refilled: Option<Instant>,
}

impl Size {
    pub(crate) fn new(bounds: Prefetch) -> Self {
        Self { bounds, now: bounds.least, refilled: None }
    }

    pub(crate) fn is_low(&self, left: u64) -> bool {
        left <= self.now / 2
    }

    /// How many to ask for. Numbers that callers wait for come on top.
    pub(crate) fn ask(&self, now: Instant, left: u64, waited_for: u64) -> u64 {
        self.next(now).saturating_sub(left).saturating_add(waited_for.saturating_sub(1)).clamp(1, COUNT_MAX)
    }

    pub(crate) fn refilled(&mut self, asked: Instant) {
        self.now = self.next(asked);
        self.refilled = Some(asked);
    }

    /// Failed attempts do not count.
    fn next(&self, now: Instant) -> u64 {
        match self.refilled.map(|before| now.duration_since(before)) {
            Some(lasted) if lasted < SOON => (self.now * 2).min(self.bounds.most),
            Some(lasted) if lasted > LATE => (self.now / 2).max(self.bounds.least),
            _ => self.now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_grows_while_numbers_are_used_quickly_and_shrinks_otherwise() {
        let mut size = Size::new(Prefetch::new(100).at_most(1_000));
        let mut now = Instant::now();
        let mut asked = |after: Duration, left, waited_for| {
            now += after;
            let asked = [size.ask(now, left, waited_for), size.ask(now, left, waited_for)];
            size.refilled(now);
            assert_eq!(asked[0], asked[1], "a failed attempt does not count");
            asked[0]
        };
        let quickly = Duration::from_millis(10);
        assert_eq!(asked(quickly, 0, 0), 100);
        assert_eq!(asked(quickly, 50, 0), 150);
        assert_eq!([asked(quickly, 0, 0), asked(quickly, 0, 0), asked(quickly, 0, 0)], [400, 800, 1_000]);
        assert_eq!(asked(Duration::from_secs(5), 0, 0), 1_000, "fast enough for this size");
        let slowly = Duration::from_mins(1);
        assert_eq!([asked(slowly, 0, 0), asked(slowly, 0, 0)], [500, 250]);
        assert_eq!([asked(slowly, 0, 0), asked(slowly, 0, 0)], [125, 100]);
        assert_eq!(asked(slowly, 0, 5_000), 5_099, "a caller that waits for more gets more");
        assert_eq!(asked(slowly, 100, 0), 1, "never nothing");
    }

    #[test]
    fn the_bounds_hold_for_any_request() {
        assert_eq!(Prefetch::new(0), Prefetch { least: 1, most: 100 });
        assert_eq!(Prefetch::new(u64::MAX), Prefetch { least: COUNT_MAX, most: COUNT_MAX });
        assert_eq!(Prefetch::new(500).at_most(20), Prefetch { least: 20, most: 20 });
    }
}

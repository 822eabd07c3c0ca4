//! Counts numbers issued, waits, refills and store latency. Counting must cost the hot path almost nothing, so each
//! thread has its own counter and the reader adds them up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Counters per series. Few, because there may be thousands of series.
const STRIPES: usize = 4;

pub const LATENCY_BOUNDS_MICROS: [u64; 10] =
    [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];

/// The counters of one series since the machine was opened.
#[derive(Debug, Default)]
pub struct Counts {
    issued: [Stripe; STRIPES],
    waits: AtomicU64,
    refills: AtomicU64,
    refill_errors: AtomicU64,
    pub(crate) usage: Usage,
}

/// A counter on its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES);
}

impl Counts {
    pub fn issued(&self) -> u64 {
        self.issued.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }

    /// Callers that had to wait for the store.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    pub fn refills(&self) -> u64 {
        self.refills.load(Ordering::Relaxed)
    }

    pub fn refill_errors(&self) -> u64 {
        self.refill_errors.load(Ordering::Relaxed)
    }

    pub(crate) fn add_issued(&self, count: u64) {
        let stripe = STRIPE.with(Cell::get);
        self.issued[stripe].0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_wait(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_refill(&self, granted: bool) {
        let counter = if granted { &self.refills } else { &self.refill_errors };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub struct Latency {
    /// Grants within each bound and above the one before; the last are above all bounds.
    buckets: [AtomicU64; LATENCY_BOUNDS_MICROS.len() + 1],
    sum_micros: AtomicU64,
}

impl Latency {
    /// How many took no longer than each bound; the last counts all.
    pub fn cumulative(&self) -> [u64; LATENCY_BOUNDS_MICROS.len() + 1] {
        let mut sum = 0;
        std::array::from_fn(|at| {
            sum += self.buckets[at].load(Ordering::Relaxed);
            sum
        })
    }

    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_micros.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = LATENCY_BOUNDS_MICROS.iter().position(|bound| micros <= *bound);
        self.buckets[at.unwrap_or(LATENCY_BOUNDS_MICROS.len())].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Periods remembered; the earliest are forgotten first.
const PERIODS_MAX: usize = 16;

/// The highest cursor that this node has seen in a series, by period; one without a name where the series never starts
/// again. All scopes of a series end alike, so the furthest runs out first, and none is kept per scope.
#[derive(Debug, Default)]
pub(crate) struct Usage(Mutex<Vec<PeriodUsage>>);

#[derive(Debug)]
struct PeriodUsage {
    period: Box<str>,
    next: u64,
}

impl Usage {
    /// Everything below `next` was granted in some scope of the period.
    pub(crate) fn raise(&self, period: Option<&str>, next: u64) {
        let period = period.unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(known) = all.iter_mut().find(|known| *known.period == *period) {
            known.next = known.next.max(next);
            return;
        }
        all.push(PeriodUsage { period: period.into(), next });
        if all.len() > PERIODS_MAX {
            all.sort_unstable_by(|one, other| one.period.cmp(&other.period));
            all.remove(0);
        }
    }

    /// Positions were released: the cursor goes back. Another scope in between counts again with its next grant.
    pub(crate) fn lower(&self, period: Option<&str>, from: u64, to: u64) {
        let period = period.unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(known) = all.iter_mut().find(|known| *known.period == *period && known.next == from) {
            known.next = to;
        }
    }

    /// `None` if this node was granted nothing in the period.
    pub(crate) fn next(&self, period: Option<&str>) -> Option<u64> {
        let period = period.unwrap_or_default();
        self.0.lock().iter().find(|known| *known.period == *period).map(|known| known.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_threads_are_added_up() {
        let counts = Counts::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| counts.add_issued(2)));
            }
        });
        assert_eq!(counts.issued(), 16_000);
    }

    #[test]
    fn a_histogram_counts_the_calls_within_each_bound() {
        let latency = Latency::default();
        for micros in [1, 250, 251, 3_000_000] {
            latency.add(Duration::from_micros(micros));
        }
        let cumulative = latency.cumulative();
        assert_eq!((cumulative[0], cumulative[1], cumulative[9], cumulative[10]), (2, 3, 3, 4));
        assert_eq!(latency.sum(), Duration::from_micros(3_000_502));
    }

    #[test]
    fn the_highest_cursor_of_all_scopes_counts() {
        let usage = Usage::default();
        assert_eq!(usage.next(None), None, "no grant yet");
        for next in [33, 257, 65] {
            usage.raise(None, next);
        }
        assert_eq!(usage.next(None), Some(257));
        usage.lower(None, 65, 40);
        assert_eq!(usage.next(None), Some(257), "another scope is further");
        usage.lower(None, 257, 200);
        assert_eq!(usage.next(None), Some(200));
    }

    #[test]
    fn each_period_has_its_own_usage() {
        let usage = Usage::default();
        usage.raise(Some("2026"), 900);
        usage.raise(Some("2027"), 3);
        assert_eq!((usage.next(Some("2026")), usage.next(Some("2027"))), (Some(900), Some(3)));
        assert_eq!(usage.next(Some("2028")), None);
    }

    #[test]
    fn only_the_latest_periods_are_remembered() {
        let usage = Usage::default();
        for year in (1_000..9_999).rev() {
            usage.raise(Some(&year.to_string()), 1);
        }
        assert_eq!(usage.0.lock().len(), PERIODS_MAX);
        assert!(usage.next(Some("9998")).is_some() && usage.next(Some("1000")).is_none());
    }
}

//! How many numbers a caller may take: a rate for each node, and a quota for each day (UTC) over all nodes, which a node
//! draws from the store in slices. Must never wait: what memory cannot answer, the machine asks the store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::code::ErrorCode;
use crate::store::StoreError;

/// Numbers per second and per day; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerLimits {
    pub rate: Option<u64>,
    pub quota: Option<u64>,
}

/// A share of the quota that a node draws at once. A node that stops or crashes forfeits the rest of its slice.
const SLICES_PER_DAY: u64 = 200;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllowanceError {
    #[error("this caller takes more than its rate of {rate} numbers per second: wait {} ms", retry_after.as_millis().max(1))]
    Rate { rate: u64, retry_after: Duration },
    #[error(
        "{count} numbers are more than an hour's at this caller's rate of {rate} per second: ask for fewer"
    )]
    TooMany { rate: u64, count: u64 },
    #[error("{count} numbers are more than this caller's quota of {quota} per day: ask for fewer")]
    BeyondQuota { quota: u64, count: u64 },
    #[error(
        "this caller has used its quota of {quota} numbers for today (UTC), or less than the {count} asked for are left: \
         it begins again in {} s", retry_after.as_secs()
    )]
    Quota { quota: u64, count: u64, retry_after: Duration },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AllowanceError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Rate { .. } | Self::Quota { .. } => ErrorCode::RATE_EXCEEDED,
            // No wait would let these pass.
            Self::TooMany { .. } | Self::BeyondQuota { .. } => ErrorCode::BAD_COUNT,
            Self::Store(error) => error.code(),
        }
    }

    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rate { retry_after, .. } | Self::Quota { retry_after, .. } => Some(*retry_after),
            Self::TooMany { .. } | Self::BeyondQuota { .. } | Self::Store(_) => None,
        }
    }
}

/// What a caller may still take. All connections of the caller share it.
#[derive(Debug)]
pub struct Allowance {
    limits: CallerLimits,
    /// When the numbers taken so far are paid off at the rate, in nanoseconds of the runtime's elapsed time.
    paid_at: AtomicU64,
    slice: Mutex<QuotaSlice>,
    /// One draw at a time: concurrent callers share a slice.
    pub(super) drawing: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct QuotaSlice {
    left: u64,
    /// When the day of the slice ends, in elapsed time of the runtime.
    ends: Duration,
}

/// Numbers that were taken off an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenAllowance {
    /// When the day of the quota ends, in elapsed time of the runtime.
    day_ends: Duration,
}

/// Draws measure the end of a day a little differently.
const SAME_DAY: Duration = Duration::from_hours(12);

const SECOND: u64 = 1_000_000_000;

/// How long it takes to pay numbers off.
fn cost_nanos(rate: u64, count: u64) -> u64 {
    u64::try_from(u128::from(count) * u128::from(SECOND) / u128::from(rate.max(1))).unwrap_or(u64::MAX)
}

/// The quota of a day, as the store counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaDraw {
    /// How many numbers were drawn: those asked for, fewer, or none.
    pub granted: u64,
    /// How long the day lasts, by the clock of the store.
    pub day_ends_in: Duration,
}

impl QuotaDraw {
    /// The rule of a draw: everything that is left, up to `slice`, but nothing if that is less than `needed`.
    pub fn decide(drawn: u64, quota: u64, needed: u64, slice: u64) -> u64 {
        let left = quota.saturating_sub(drawn);
        if left < needed { 0 } else { left.min(slice.max(needed)) }
    }
}

/// How many numbers a caller drew from its quota on its last day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnQuota {
    pub caller: Box<str>,
    /// Days since 1970 (UTC).
    pub day: i64,
    pub drawn: u64,
}

/// A request to draw from the quota of today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRequest {
    pub caller: Box<str>,
    pub quota: u64,
    pub needed: u64,
    pub slice: u64,
}

/// Why numbers cannot be taken off an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// No wait is long enough.
    TooMany,
    /// More than the quota of a day.
    BeyondQuota,
    Rate(Duration),
    /// Memory has no answer: the store must be asked for a slice of the quota.
    Quota,
}

/// A request for more than the rate allows in this time is refused: the next ones would wait for hours.
const REQUEST_SECONDS_MAX: u64 = 60 * 60;

impl Allowance {
    pub fn new(limits: CallerLimits) -> Self {
        Self {
            limits,
            paid_at: AtomicU64::new(0),
            slice: Mutex::default(),
            drawing: tokio::sync::Mutex::default(),
        }
    }

    pub fn limits(&self) -> CallerLimits {
        self.limits
    }

    /// Takes `count` numbers off the allowance. A request passes if earlier ones are paid off, and may itself be larger than
    /// the rate: the next ones wait for it. One second may be taken at once.
    pub fn try_take(&self, count: u64, now: Duration) -> Result<TakenAllowance, Shortage> {
        if self.limits.rate.is_some_and(|rate| count > rate.saturating_mul(REQUEST_SECONDS_MAX)) {
            return Err(Shortage::TooMany);
        }
        if self.limits.quota.is_some_and(|quota| count > quota) {
            return Err(Shortage::BeyondQuota);
        }
        let day_ends = match self.limits.quota {
            None => Duration::MAX,
            Some(_) => self.take_from_slice(count, now).ok_or(Shortage::Quota)?,
        };
        let taken = TakenAllowance { day_ends };
        let Some(rate) = self.limits.rate else { return Ok(taken) };
        if let Err(wait) = self.take_at_rate(rate, count, now) {
            self.give_back_quota(taken, count);
            return Err(Shortage::Rate(wait));
        }
        Ok(taken)
    }

    /// How many numbers could be taken now one by one, without the store.
    pub fn left(&self, now: Duration) -> u64 {
        let of_slice = || {
            let slice = *self.slice.lock();
            if now < slice.ends { slice.left } else { 0 }
        };
        let of_quota = self.limits.quota.map_or(u64::MAX, |_| of_slice());
        of_quota.min(self.limits.rate.map_or(u64::MAX, |rate| self.left_at_rate(rate, now)))
    }

    fn left_at_rate(&self, rate: u64, now: Duration) -> u64 {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let paid_at = self.paid_at.load(Ordering::Relaxed).max(now);
        let Some(span) = now.saturating_add(SECOND).checked_sub(paid_at) else { return 0 };
        let count = u128::from(span) * u128::from(rate) / u128::from(SECOND) + 1;
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    fn take_at_rate(&self, rate: u64, count: u64, now: Duration) -> Result<(), Duration> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let cost = cost_nanos(rate, count);
        let advance = |paid_at: u64| {
            (paid_at <= now.saturating_add(SECOND)).then(|| paid_at.max(now).saturating_add(cost))
        };
        match self.paid_at.try_update(Ordering::Relaxed, Ordering::Relaxed, advance) {
            Ok(_) => Ok(()),
            Err(paid_at) => Err(Duration::from_nanos(paid_at - now - SECOND)),
        }
    }

    /// Returns when the day of the slice ends.
    fn take_from_slice(&self, count: u64, now: Duration) -> Option<Duration> {
        let mut slice = self.slice.lock();
        let fits = now < slice.ends && slice.left >= count;
        fits.then(|| {
            slice.left -= count;
            slice.ends
        })
    }

    /// Returns numbers that were not taken after all.
    pub fn give_back(&self, taken: TakenAllowance, count: u64) {
        if let Some(rate) = self.limits.rate {
            self.paid_at.fetch_sub(cost_nanos(rate, count), Ordering::Relaxed);
        }
        self.give_back_quota(taken, count);
    }

    /// Numbers of a day that is over do not return to the next one.
    fn give_back_quota(&self, taken: TakenAllowance, count: u64) {
        if self.limits.quota.is_some() {
            let mut slice = self.slice.lock();
            if slice.ends.abs_diff(taken.day_ends) < SAME_DAY {
                slice.left += count;
            }
        }
    }

    /// How much to draw for a request that the slice cannot serve: at least what it lacks.
    pub(super) fn draw_request(&self, caller: &str, count: u64, now: Duration) -> QuotaRequest {
        let quota = self.limits.quota.unwrap_or_default();
        let QuotaSlice { left, ends } = *self.slice.lock();
        let needed = if now < ends { count.saturating_sub(left) } else { count };
        QuotaRequest { caller: caller.into(), quota, needed, slice: quota / SLICES_PER_DAY }
    }

    pub(super) fn add_slice(&self, draw: QuotaDraw, now: Duration) {
        let mut slice = self.slice.lock();
        let left = if now < slice.ends { slice.left } else { 0 };
        *slice = QuotaSlice { left: left + draw.granted, ends: now + draw.day_ends_in };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_rate_holds_over_time_and_lets_a_second_pass_at_once() {
        let allowance = Allowance::new(CallerLimits { rate: Some(100), quota: None });
        let start = Duration::from_secs(100);
        let mut taken = 0_u64;
        for tick in 0..10_000 {
            taken += u64::from(allowance.try_take(1, start + millis(tick)).is_ok());
        }
        assert!((1_000..=1_101).contains(&taken), "{taken} in 10 s at 100 a second");
    }

    #[test]
    fn a_large_request_passes_and_is_paid_off_by_waiting() {
        let allowance = Allowance::new(CallerLimits { rate: Some(100), quota: None });
        let start = Duration::from_secs(100);
        assert!(allowance.try_take(1_000, start).is_ok());
        assert_eq!(allowance.try_take(1, start), Err(Shortage::Rate(Duration::from_secs(9))));
        let later = start + Duration::from_secs(9);
        let taken = allowance.try_take(1, later).unwrap();
        allowance.give_back(taken, 1);
        assert_eq!(
            allowance.try_take(101, later).map(|_| ()),
            Ok(()),
            "numbers that were given back cost nothing"
        );
    }

    #[test]
    fn a_request_for_more_than_an_hour_of_the_rate_is_refused_and_takes_nothing() {
        let allowance = Allowance::new(CallerLimits { rate: Some(10), quota: Some(100_000) });
        allowance.add_slice(QuotaDraw { granted: 100_000, day_ends_in: millis(1_000) }, Duration::ZERO);
        assert_eq!(allowance.try_take(36_001, Duration::ZERO), Err(Shortage::TooMany));
        assert!(allowance.try_take(36_000, Duration::ZERO).is_ok());
        assert_eq!(allowance.slice.lock().left, 64_000);
    }

    #[test]
    fn as_many_numbers_are_left_as_can_be_taken_one_by_one() {
        for limits in [
            CallerLimits { rate: Some(10), quota: None },
            CallerLimits { rate: Some(10), quota: Some(5) },
            CallerLimits { rate: None, quota: Some(20) },
        ] {
            let allowance = Allowance::new(limits);
            let now = Duration::from_secs(100);
            if let Some(granted) = limits.quota {
                assert_eq!(allowance.left(now), 0, "no slice is drawn yet");
                allowance.add_slice(QuotaDraw { granted, day_ends_in: millis(1_000) }, now);
            }
            for left in (0..allowance.left(now)).rev() {
                assert!(allowance.try_take(1, now).is_ok());
                assert_eq!(allowance.left(now), left, "{limits:?}");
            }
            assert!(allowance.try_take(1, now).is_err(), "{limits:?}");
        }
        assert_eq!(Allowance::new(CallerLimits::default()).left(millis(1)), u64::MAX);
    }

    #[test]
    fn a_slice_is_used_up_ends_with_its_day_and_takes_numbers_back() {
        let allowance = Allowance::new(CallerLimits { rate: None, quota: Some(1_000) });
        let draw = QuotaDraw { granted: 10, day_ends_in: millis(1_000) };
        assert_eq!(allowance.try_take(1, Duration::ZERO), Err(Shortage::Quota));
        allowance.add_slice(draw, Duration::ZERO);
        let taken = allowance.try_take(8, millis(1)).unwrap();
        assert_eq!(allowance.try_take(3, millis(1)), Err(Shortage::Quota));
        allowance.give_back(taken, 1);
        assert!(allowance.try_take(3, millis(1)).is_ok());
        allowance.add_slice(draw, millis(2));
        assert_eq!(allowance.try_take(1, millis(1_002)), Err(Shortage::Quota), "the day is over");
        let tomorrow = QuotaDraw { granted: 10, day_ends_in: Duration::from_hours(24) };
        allowance.add_slice(tomorrow, millis(1_002));
        allowance.give_back(taken, 8);
        assert_eq!(allowance.slice.lock().left, 10, "numbers of yesterday do not count today");
    }

    #[test]
    fn a_request_beyond_the_rate_takes_nothing_from_the_quota() {
        let allowance = Allowance::new(CallerLimits { rate: Some(1), quota: Some(10) });
        allowance.add_slice(QuotaDraw { granted: 10, day_ends_in: millis(100_000) }, Duration::ZERO);
        assert!(allowance.try_take(3, Duration::ZERO).is_ok());
        assert!(matches!(allowance.try_take(3, Duration::ZERO), Err(Shortage::Rate(_))));
        assert_eq!(allowance.slice.lock().left, 7);
    }

    /// Every draw over a small space.
    #[test]
    fn draws_never_exceed_the_quota_and_serve_a_request_or_take_nothing() {
        for (drawn, quota, needed, slice) in (0..6).flat_map(|a| {
            (0..6).flat_map(move |b| (0..6).flat_map(move |c| (0..6).map(move |d| (a, b, c, d))))
        }) {
            let granted = QuotaDraw::decide(drawn, quota, needed, slice);
            assert!(granted == 0 || granted >= needed && drawn + granted <= quota);
            assert_eq!(granted == 0 && needed > 0, needed > 0 && quota.saturating_sub(drawn) < needed);
        }
    }
}

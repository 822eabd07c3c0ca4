//! A rate in a few bytes: a burst, then one each interval.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// How many may come at once.
    pub(crate) burst: u32,
    /// The time after which one more may come.
    pub(crate) interval: Duration,
}

/// How much of a rate is used, as the moment at which the whole burst is there again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RateUse(Duration);

impl RateUse {
    /// Uses one. An error tells after which time one may be used.
    pub(crate) fn take(&mut self, limit: RateLimit, now: Duration) -> Result<(), Duration> {
        let next = self.0.max(now) + limit.interval;
        let latest = now + limit.interval * limit.burst;
        match next.checked_sub(latest) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                self.0 = next;
                Ok(())
            }
        }
    }

    /// Takes back one use.
    pub(crate) fn give_back(&mut self, limit: RateLimit) {
        self.0 = self.0.saturating_sub(limit.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: RateLimit = RateLimit { burst: 3, interval: Duration::from_secs(1) };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_burst_is_followed_by_one_each_interval() {
        let (mut usage, start) = (RateUse::default(), seconds(100));
        assert!((0..3).all(|_| usage.take(LIMIT, start).is_ok()));
        assert_eq!(usage.take(LIMIT, start), Err(seconds(1)));
        assert_eq!(usage.take(LIMIT, start + seconds(1)), Ok(()));
        assert_eq!(usage.take(LIMIT, start + seconds(1)), Err(seconds(1)), "a refusal uses nothing");
        let later = start + seconds(1_000);
        assert!((0..3).all(|_| usage.take(LIMIT, later).is_ok()), "a pause restores the burst");
        assert!(usage.take(LIMIT, later).is_err(), "and no more than the burst");
    }

    #[test]
    fn a_use_that_is_given_back_can_be_taken_again() {
        let (mut usage, now) = (RateUse::default(), seconds(100));
        for _ in 0..1_000 {
            assert_eq!(usage.take(LIMIT, now), Ok(()));
            usage.give_back(LIMIT);
        }
    }

    #[test]
    fn a_burst_of_none_allows_none() {
        let none = RateLimit { burst: 0, ..LIMIT };
        assert!(RateUse::default().take(none, seconds(100)).is_err());
    }
}

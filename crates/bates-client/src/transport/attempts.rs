//! The limits of a call: attempts, total time, and the pauses between attempts.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Short enough to be added to any time.
const TOTAL_MAX: Duration = Duration::from_hours(24 * 365);

#[derive(Clone, Copy, Debug)]
pub(crate) struct RetrySettings {
    pub(crate) attempts: u32,
    pub(crate) total: Duration,
    /// After the first attempt; doubles after each.
    pub(crate) pause: Duration,
    pub(crate) pause_max: Duration,
    pub(crate) answer: Duration,
    pub(crate) connect: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts: 5,
            total: Duration::from_mins(1),
            pause: Duration::from_millis(100),
            pause_max: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            connect: Duration::from_secs(2),
        }
    }
}

pub(crate) struct Attempts {
    settings: RetrySettings,
    end: Instant,
    pub(crate) count: u32,
}

impl Attempts {
    pub(crate) fn new(settings: RetrySettings) -> Self {
        Self { settings, end: Instant::now() + settings.total.min(TOTAL_MAX), count: 0 }
    }

    pub(crate) fn left(&self) -> Duration {
        self.settings.answer.min(self.end.saturating_duration_since(Instant::now()))
    }

    /// Pauses after a failed attempt, at least as long as the server asks for. Returns whether there is a next attempt.
    pub(crate) async fn wait(&mut self, can_retry: bool, retry_after: Option<Duration>) -> bool {
        self.count += 1;
        let pause = self.pause(Uuid::new_v4().as_u128()).max(retry_after.unwrap_or_default());
        let left = self.end.saturating_duration_since(Instant::now());
        if !can_retry || self.count >= self.settings.attempts || pause >= left {
            return false;
        }
        sleep(pause).await;
        true
    }

    /// Between a half and the whole of the doubled pause, so that callers that failed together spread out.
    fn pause(&self, chance: u128) -> Duration {
        let doubled = self.settings.pause.saturating_mul(1 << self.count.saturating_sub(1).min(20));
        let half = doubled.min(self.settings.pause_max) / 2;
        let nanos = half.as_nanos().min(u128::from(u64::MAX));
        half + Duration::from_nanos(u64::try_from(chance % (nanos + 1)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pauses_double_up_to_the_longest_and_vary_by_half() {
        let mut attempts = Attempts::new(RetrySettings::default());
        let mut whole = Duration::from_millis(100);
        for _ in 0..100 {
            attempts.count += 1;
            for chance in [0, 1, 7 << 80, u128::MAX] {
                let pause = attempts.pause(chance);
                assert!((whole / 2..=whole).contains(&pause), "{pause:?} of {whole:?}");
            }
            assert_eq!(attempts.pause(0), whole / 2);
            whole = (whole * 2).min(Duration::from_secs(5));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_and_total_time_are_both_limits() {
        let settings = RetrySettings { attempts: 3, ..RetrySettings::default() };
        let mut attempts = Attempts::new(settings);
        let mut count = 0;
        loop {
            assert!(attempts.left() <= settings.answer);
            count += 1;
            if !attempts.wait(true, None).await {
                break;
            }
        }
        assert_eq!(count, 3);
        let mut attempts = Attempts::new(RetrySettings { attempts: u32::MAX, ..settings });
        let begun = Instant::now();
        while attempts.wait(true, Some(Duration::from_secs(7))).await {}
        assert_eq!((attempts.count, begun.elapsed().as_secs()), (9, 56));
        assert!(!Attempts::new(settings).wait(true, Some(Duration::MAX)).await);
    }
}

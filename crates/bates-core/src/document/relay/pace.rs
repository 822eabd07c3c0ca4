//! When a relay calls its sink or its store, and with how many documents. Pure: no clock, no task.
//!
//! A sink that takes no document of a batch gets growing pauses. One that does not finish a batch in time gets smaller
//! batches, and larger ones once it keeps up. A relay polls less often while notices of other nodes arrive, except while it
//! waits for its own retries, for which no notice comes.

use std::ops::Range;
use std::time::Duration;

use crate::document::sink::DeliveryResult;
use crate::document::{DeliveryError, Settlement, Verdict};

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);

pub(super) const JITTER: Range<f64> = 0.75..1.25;

#[derive(Debug, Default)]
pub(super) struct Breaker {
    pause: Option<Duration>,
}

impl Breaker {
    /// How long to wait before the sink is probed with one document; `None` while it takes documents.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// A sink that refuses a document is not down.
    pub(super) fn observe(&mut self, outcomes: &[DeliveryResult]) {
        let is_down = |outcome: &DeliveryResult| {
            matches!(outcome, Err(DeliveryError::Unavailable(_) | DeliveryError::Unanswered(_)))
        };
        self.pause = match self.pause {
            _ if !outcomes.iter().all(is_down) => None,
            None => Some(PAUSE_MIN),
            Some(pause) => Some((pause * 2).min(PAUSE_MAX)),
        };
    }
}

#[derive(Debug)]
pub(super) struct BatchSize {
    batch_max: usize,
}

impl Default for BatchSize {
    fn default() -> Self {
        Self { batch_max: usize::MAX }
    }
}

impl BatchSize {
    pub(super) fn limit(&self, batch_max: usize) -> usize {
        batch_max.min(self.batch_max).max(1)
    }

    /// Falls fast, to find the right size before documents run out of attempts; rises slowly, because a batch that is
    /// too large costs each of its documents an attempt.
    pub(super) fn observe(&mut self, size: usize, has_ended: bool) {
        if !has_ended {
            self.batch_max = (size / 4).max(1);
        } else if size >= self.batch_max {
            self.batch_max = self.batch_max.saturating_add(self.batch_max / 4 + 1);
        }
    }
}

/// How many times longer the relay sleeps while notices arrive. It still polls: only polling finds documents of crashed
/// nodes, and documents whose notice was lost.
const NOTICES_FACTOR: u32 = 5;

#[derive(Debug)]
pub(super) struct PollInterval {
    interval: Duration,
    /// When the last retry is due.
    retries_until: Option<Duration>,
}

impl PollInterval {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, retries_until: None }
    }

    pub(super) fn pause(&self, receives_notices: bool, now: Duration) -> Duration {
        // One poll after the last retry is due, to claim it.
        let has_retries = self.retries_until.is_some_and(|until| now.saturating_sub(until) < self.interval);
        self.interval.saturating_mul(if receives_notices && !has_retries { NOTICES_FACTOR } else { 1 })
    }

    pub(super) fn observe(&mut self, settlements: &[Settlement], now: Duration) {
        let due = settlements.iter().filter_map(|settlement| match settlement.verdict {
            Verdict::RetryAfter(wait, _) | Verdict::Unanswered(Some(wait), _) => Some(now + wait),
            _ => None,
        });
        self.retries_until = self.retries_until.into_iter().chain(due).max();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn pauses_grow_while_a_sink_takes_nothing() {
        let mut breaker = Breaker::default();
        let down = || Err(DeliveryError::Unavailable("down".into()));
        let refused = || Err(DeliveryError::Refused("bad".into()));
        breaker.observe(&[Ok(()), down()]);
        breaker.observe(&[refused()]);
        assert_eq!(breaker.pause(), None, "a sink that answers is not down");
        let mut pauses = Vec::new();
        for _ in 0..10 {
            breaker.observe(&[down(), down()]);
            pauses.push(breaker.pause.unwrap().as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        breaker.observe(&[refused(), down()]);
        assert_eq!(breaker.pause(), None);
    }

    #[test]
    fn a_slow_sink_gets_smaller_batches_until_it_keeps_up() {
        let mut pace = BatchSize::default();
        assert_eq!(pace.limit(5_000), 5_000);
        pace.observe(5_000, false);
        pace.observe(1_250, false);
        assert_eq!(pace.limit(5_000), 312);
        pace.observe(1, true);
        assert_eq!(pace.limit(5_000), 312, "one document does not show how many would fit");
        pace.observe(312, true);
        assert_eq!((pace.limit(5_000), pace.limit(100)), (391, 100));
        for _ in 0..9 {
            pace.observe(1, false);
        }
        assert_eq!(pace.limit(5_000), 1, "never 0");
    }

    #[test]
    fn a_notified_relay_polls_less_often_unless_it_has_retries() {
        let (second, now) = (Duration::from_secs(1), Duration::from_hours(1));
        let mut poll = PollInterval::new(second);
        let settled = |verdict| Settlement { document_id: Uuid::nil(), attempt: 1, verdict };
        poll.observe(&[settled(Verdict::Delivered), settled(Verdict::Dead("bad".into()))], now);
        assert_eq!((poll.pause(false, now), poll.pause(true, now)), (second, 5 * second));
        let again = |seconds| settled(Verdict::RetryAfter(seconds * second, "down".into()));
        poll.observe(&[again(8), again(2)], now);
        poll.observe(&[again(4)], now);
        for (after, pause) in [(0, second), (8, second), (9, 5 * second)] {
            assert_eq!(poll.pause(true, now + after * second), pause, "after {after} s");
        }
    }
}

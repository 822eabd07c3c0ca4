//! When a relay asks its sink or its store, and with how many documents. Pure: no clock, no task.
//!
//! A sink that takes nothing of a batch gets pauses that grow. One that does not end a batch in time gets smaller batches,
//! and larger ones once it keeps up. A relay polls less often while notices of other nodes arrive, except while it waits
//! for its own retries, for which no notice comes.

use std::ops::Range;
use std::time::Duration;

use crate::document::{DeliveryError, Settlement, Verdict};

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);

pub(super) const JITTER: Range<f64> = 0.75..1.25;

#[derive(Debug, Default)]
pub(super) struct Breaker {
    pause: Option<Duration>,
}

impl Breaker {
    /// The pause before the sink is tried with one document; `None` while it takes documents.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// A sink that refuses a document is not away.
    pub(super) fn observe(&mut self, outcomes: &[Result<(), DeliveryError>]) {
        let is_away = |outcome: &Result<(), DeliveryError>| {
            matches!(outcome, Err(DeliveryError::Unavailable(_) | DeliveryError::Unanswered(_)))
        };
        self.pause = match self.pause {
            _ if !outcomes.iter().all(is_away) => None,
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

    /// Falls fast, to find the pace within fewer tries than kill a document; rises slowly, because a batch that is too
    /// large costs each of its documents a try.
    pub(super) fn observe(&mut self, given: usize, was_ended: bool) {
        if !was_ended {
            self.batch_max = (given / 4).max(1);
        } else if given >= self.batch_max {
            self.batch_max = self.batch_max.saturating_add(self.batch_max / 4 + 1);
        }
    }
}

/// How many times longer the relay sleeps while notices arrive. Only documents of nodes that died, or whose notice got
/// lost, are found this late.
const NOTICED_FACTOR: u32 = 5;

#[derive(Debug)]
pub(super) struct PollInterval {
    each: Duration,
    /// When the last document that failed here is due.
    retries_until: Option<Duration>,
}

impl PollInterval {
    pub(super) fn each(each: Duration) -> Self {
        Self { each, retries_until: None }
    }

    pub(super) fn pause(&self, is_told: bool, now: Duration) -> Duration {
        // One more look, after the last retry.
        let has_retries = self.retries_until.is_some_and(|until| now.saturating_sub(until) < self.each);
        if is_told && !has_retries { self.each.saturating_mul(NOTICED_FACTOR) } else { self.each }
    }

    pub(super) fn observe(&mut self, settled: &[Settlement], now: Duration) {
        let due = settled.iter().filter_map(|settlement| match settlement.verdict {
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

    fn away() -> Result<(), DeliveryError> {
        Err(DeliveryError::Unavailable("down".into()))
    }

    #[test]
    fn a_sink_that_takes_nothing_is_left_alone_longer_and_longer_until_it_takes_something() {
        let mut breaker = Breaker::default();
        let refused = || Err(DeliveryError::Refused("bad".into()));
        breaker.observe(&[Ok(()), away()]);
        breaker.observe(&[refused()]);
        assert_eq!(breaker.pause(), None, "one that answers is not away");
        let mut pauses = Vec::new();
        for _ in 0..10 {
            breaker.observe(&[away(), away()]);
            pauses.push(breaker.pause.unwrap().as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        breaker.observe(&[refused(), away()]);
        assert_eq!(breaker.pause(), None);
    }

    #[test]
    fn a_sink_that_is_too_slow_for_a_batch_gets_a_smaller_one_until_it_keeps_up() {
        let mut pace = BatchSize::default();
        assert_eq!(pace.limit(5_000), 5_000);
        pace.observe(5_000, false);
        pace.observe(1_250, false);
        assert_eq!(pace.limit(5_000), 312);
        pace.observe(1, true);
        assert_eq!(pace.limit(5_000), 312, "one document tells nothing of how many would fit");
        pace.observe(312, true);
        assert_eq!((pace.limit(5_000), pace.limit(100)), (391, 100));
        for _ in 0..9 {
            pace.observe(1, false);
        }
        assert_eq!(pace.limit(5_000), 1, "never none");
    }

    #[test]
    fn who_is_told_looks_less_often_unless_retries_of_its_own_are_to_come() {
        let (second, now) = (Duration::from_secs(1), Duration::from_hours(1));
        let mut poll = PollInterval::each(second);
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

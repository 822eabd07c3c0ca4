//! How long a relay sleeps when nobody wakes it: longer while others tell what they write, but not while it waits for
//! what it failed to deliver itself, of which nobody tells. Pure: no clock, no task.

use std::time::Duration;

use crate::document::{Settlement, Verdict};

/// How many times longer it sleeps while it is told. What is found this late is what a node wrote, or was to try
/// again, and died; or word that got lost.
const LONGER: u32 = 5;

/// When to look without being told.
#[derive(Debug)]
pub(super) struct Poll {
    each: Duration,
    /// When the last document that failed here is due.
    retries_until: Option<Duration>,
}

impl Poll {
    pub(super) fn each(each: Duration) -> Self {
        Self { each, retries_until: None }
    }

    /// How long to sleep, at a time of the runtime.
    pub(super) fn pause(&self, is_told: bool, now: Duration) -> Duration {
        // One more look, behind the last retry.
        let has_retries = self.retries_until.is_some_and(|until| now.saturating_sub(until) < self.each);
        if is_told && !has_retries { self.each.saturating_mul(LONGER) } else { self.each }
    }

    /// What became of a batch.
    pub(super) fn saw(&mut self, settled: &[Settlement], now: Duration) {
        let due = settled.iter().filter_map(|settlement| match settlement.verdict {
            Verdict::Again(wait, _) | Verdict::Unanswered(Some(wait), _) => Some(now + wait),
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
    fn who_is_told_looks_less_often_unless_retries_of_its_own_are_to_come() {
        let (second, now) = (Duration::from_secs(1), Duration::from_hours(1));
        let mut poll = Poll::each(second);
        let settled = |verdict| Settlement { event: Uuid::nil(), attempt: 1, verdict };
        poll.saw(&[settled(Verdict::Delivered), settled(Verdict::Dead("bad".into()))], now);
        assert_eq!((poll.pause(false, now), poll.pause(true, now)), (second, 5 * second));
        let again = |seconds| settled(Verdict::Again(seconds * second, "down".into()));
        poll.saw(&[again(8), again(2)], now);
        poll.saw(&[again(4)], now);
        for (after, pause) in [(0, second), (8, second), (9, 5 * second)] {
            assert_eq!(poll.pause(true, now + after * second), pause, "after {after} s");
        }
    }
}

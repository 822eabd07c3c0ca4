//! When a sink is left alone: after a batch of which it took nothing, for a time that grows. Pure: no clock, no task.

use std::ops::Range;
use std::time::Duration;

use crate::document::Undelivered;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// By which a pause, or the wait before a document is tried again, varies.
pub(super) const JITTER: Range<f64> = 0.75..1.25;

/// Whether a sink is tried.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    pause: Option<Duration>,
}

impl Breaker {
    /// How long to wait, give or take, before it is tried with one document; `None` while it takes documents.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// What became of a batch. A document that was refused says nothing about the sink.
    pub(super) fn saw(&mut self, outcomes: &[Result<(), Undelivered>]) {
        let is_away = |outcome: &Result<(), Undelivered>| {
            matches!(outcome, Err(Undelivered::Unavailable(_) | Undelivered::Unanswered(_)))
        };
        self.pause = match self.pause {
            _ if !outcomes.iter().all(is_away) => None,
            None => Some(PAUSE_MIN),
            Some(pause) => Some((pause * 2).min(PAUSE_MAX)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Result<(), Undelivered> {
        Err(Undelivered::Unavailable("down".into()))
    }

    #[test]
    fn a_sink_that_takes_nothing_is_left_alone_longer_and_longer_until_it_takes_something() {
        let mut breaker = Breaker::default();
        let refused = || Err(Undelivered::Refused("bad".into()));
        breaker.saw(&[Ok(()), away()]);
        breaker.saw(&[refused()]);
        assert_eq!(breaker.pause(), None, "one that answers is not away");
        let mut pauses = Vec::new();
        for _ in 0..10 {
            breaker.saw(&[away(), away()]);
            pauses.push(breaker.pause.unwrap().as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        breaker.saw(&[refused(), away()]);
        assert_eq!(breaker.pause(), None);
    }
}

//! When Redis is asked, and when it is left alone. Pure: told the time, and reads none.

use std::time::Duration;

use tokio::time::Instant;

/// How long Redis is left alone after a failure; it doubles with each.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How long a list that was found empty is left alone: its filler needs some milliseconds.
const EMPTY: Duration = Duration::from_millis(20);

/// Whether Redis is asked, and whether a call waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ask,
    /// It failed some time ago: it is asked, and nobody waits for it.
    Probe,
    /// It is left alone.
    Leave,
}

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    not_before: Option<Instant>,
    /// The last pause after a failure, if the last thing was one.
    pause: Option<Duration>,
}

impl Breaker {
    pub(crate) fn verdict(&self, now: Instant) -> Verdict {
        match (self.not_before, self.pause) {
            (Some(time), _) if now < time => Verdict::Leave,
            (_, Some(_)) => Verdict::Probe,
            _ => Verdict::Ask,
        }
    }

    pub(crate) fn worked(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn was_empty(&mut self, now: Instant) {
        *self = Self { not_before: Some(now + EMPTY), pause: None };
    }

    pub(crate) fn failed(&mut self, now: Instant) {
        let pause = self.pause.map_or(PAUSES.0, |last| (last * 2).min(PAUSES.1));
        *self = Self { not_before: Some(now + pause), pause: Some(pause) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_end_with_the_first_number() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.verdict(now), Verdict::Ask);
        for pause_ms in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
            breaker.failed(now);
            let pause = Duration::from_millis(pause_ms);
            assert_eq!(breaker.verdict(now + pause.saturating_sub(Duration::from_nanos(1))), Verdict::Leave);
            now += pause;
            assert_eq!(breaker.verdict(now), Verdict::Probe);
        }
        breaker.worked();
        assert_eq!(breaker.verdict(now), Verdict::Ask);
        breaker.failed(now);
        assert_eq!(breaker.verdict(now + PAUSES.0), Verdict::Probe);
    }

    #[test]
    fn an_empty_list_is_asked_again_soon_and_waited_for() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.was_empty(now);
        assert_eq!(breaker.verdict(now), Verdict::Leave);
        assert_eq!(breaker.verdict(now + EMPTY), Verdict::Ask);
    }
}

//! Retries with growing, random pauses until a time limit.

use std::time::Duration;

use bates_core::{Runtime as _, SystemRuntime};
use tokio::time::Instant;

use crate::error::Failure;

/// The first pause. A deadlock or a conflict is usually over by then.
const PAUSE_MIN: Duration = Duration::from_millis(5);

/// The longest pause, and so the longest delay until a returned database is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(500);

pub(crate) struct Backoff {
    ends: Instant,
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { ends: Instant::now() + limit, pause: PAUSE_MIN }
    }

    pub(crate) fn ends(&self) -> Instant {
        self.ends
    }

    /// Waits before the next attempt. Returns `false` if no time is left for one.
    pub(crate) async fn pause(&mut self) -> bool {
        let pause = self.next_pause();
        if Instant::now() + pause > self.ends {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// Waits before the next attempt, even after the time limit.
    pub(crate) async fn pause_without_limit(&mut self) {
        let pause = self.next_pause();
        tokio::time::sleep(pause).await;
    }

    /// A random pause between half and all of the current one, which then doubles.
    fn next_pause(&mut self) -> Duration {
        let longest = self.pause;
        self.pause = (longest * 2).min(PAUSE_MAX);
        SystemRuntime.jittered(longest, 0.5..1.0)
    }
}

pub(crate) async fn in_time<T, E: Into<Failure>>(
    until: Instant,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    match tokio::time::timeout_at(until, work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Failure::Transient("the database did not answer in time".into())),
    }
}

/// Repeats work that may run twice until it succeeds, fails permanently, or `timeout` has passed.
pub(crate) async fn with_retries<T, F>(timeout: Duration, mut work: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut backoff = Backoff::new(timeout);
    loop {
        match in_time(backoff.ends(), work()).await {
            Err(Failure::Transient(reason)) => {
                if !backoff.pause().await {
                    return Err(Failure::Transient(reason));
                }
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_passing_failure_is_retried_until_the_timeout_and_a_lasting_one_is_not() {
        let mut attempts = 0;
        let outcome = with_retries(Duration::from_secs(2), || {
            attempts += 1;
            std::future::ready(Err::<(), _>(Failure::Transient("away".into())))
        });
        assert_eq!(outcome.await, Err(Failure::Transient("away".into())));
        assert!((5..40).contains(&attempts), "{attempts}");
        let mut attempts = 0;
        let lasting = Failure::Permanent(bates_core::StoreError::Unavailable("no rights".into()));
        let outcome = with_retries(Duration::from_secs(2), || {
            attempts += 1;
            std::future::ready(Err::<(), _>(lasting.clone()))
        });
        assert_eq!((outcome.await, attempts), (Err(lasting.clone()), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_never_answers_is_given_up() {
        let outcome = with_retries(Duration::from_secs(2), std::future::pending::<Result<(), _>>);
        assert!(matches!(outcome.await, Err(Failure::Transient(_))));
    }
}

//! Tries again with growing, random pauses until patience ends.

use std::time::Duration;

use bates_core::{Runtime as _, SystemRuntime};
use tokio::time::Instant;

use crate::error::Failed;

/// The first pause. A deadlock or a conflict is over by then.
const PAUSE_MIN: Duration = Duration::from_millis(5);

/// The longest pause: how late at most a database that came back is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(500);

pub(crate) struct Patience {
    ends: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { ends: Instant::now() + patience, pause: PAUSE_MIN }
    }

    pub(crate) fn ends(&self) -> Instant {
        self.ends
    }

    /// Waits before the next try. `false`: there is no time for one.
    pub(crate) async fn pause(&mut self) -> bool {
        let pause = self.next_pause();
        if Instant::now() + pause > self.ends {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// Waits before the next try, also when patience has ended.
    pub(crate) async fn pause_anyway(&mut self) {
        let pause = self.next_pause();
        tokio::time::sleep(pause).await;
    }

    /// Between a half and the whole of a pause that doubles.
    fn next_pause(&mut self) -> Duration {
        let whole = self.pause;
        self.pause = (whole * 2).min(PAUSE_MAX);
        SystemRuntime.jittered(whole, 0.5..1.0)
    }
}

pub(crate) async fn in_time<T, E: Into<Failed>>(
    until: Instant,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failed> {
    match tokio::time::timeout_at(until, work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Failed::Passing("it did not answer in time".into())),
    }
}

/// Tries work that may be done twice until it succeeds, fails for good, or patience ends.
pub(crate) async fn retried<T, F>(patience: Duration, mut work: impl FnMut() -> F) -> Result<T, Failed>
where
    F: Future<Output = Result<T, Failed>>,
{
    let mut left = Patience::new(patience);
    loop {
        match in_time(left.ends(), work()).await {
            Err(Failed::Passing(reason)) => {
                if !left.pause().await {
                    return Err(Failed::Passing(reason));
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
    async fn a_passing_failure_is_retried_until_patience_ends_and_a_lasting_one_is_not() {
        let mut attempts = 0;
        let outcome = retried(Duration::from_secs(2), || {
            attempts += 1;
            std::future::ready(Err::<(), _>(Failed::Passing("away".into())))
        });
        assert_eq!(outcome.await, Err(Failed::Passing("away".into())));
        assert!((5..40).contains(&attempts), "{attempts}");
        let mut attempts = 0;
        let lasting = Failed::Lasting(bates_core::StoreError::Unavailable("no rights".into()));
        let outcome = retried(Duration::from_secs(2), || {
            attempts += 1;
            std::future::ready(Err::<(), _>(lasting.clone()))
        });
        assert_eq!((outcome.await, attempts), (Err(lasting.clone()), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_never_answers_is_given_up() {
        let outcome = retried(Duration::from_secs(2), std::future::pending::<Result<(), _>>);
        assert!(matches!(outcome.await, Err(Failed::Passing(_))));
    }
}

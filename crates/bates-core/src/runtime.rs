//! The port to time, tasks and randomness. The core uses no other source, so that a run can be repeated.
//!
//! Only the business date of a number depends on the clock, never its uniqueness: a clock that jumps moves requests to
//! the scope of another period, whose cursor is durable too.

use std::ops::Range;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time, tasks and randomness. All but the clock have a default: Tokio and the operating system.
pub trait Runtime: Send + Sync + 'static {
    /// The time of day. It may jump.
    fn now(&self) -> Timestamp;

    /// Time since some moment in the past. It never jumps; only differences have a meaning.
    fn elapsed(&self) -> Duration;

    /// Completes after this time.
    fn sleep(&self, time: Duration) -> Task {
        Box::pin(tokio::time::sleep(time))
    }

    /// Runs a task in the background. It is dropped with the runtime.
    fn spawn(&self, task: Task) {
        drop(tokio::spawn(task));
    }

    /// Runs long work on a thread of its own.
    fn compute(&self, work: Box<dyn FnOnce() + Send>) {
        drop(tokio::task::spawn_blocking(work));
    }

    /// Fills in bytes that cannot be guessed; the error says why it cannot.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), Box<str>> {
        getrandom::fill(bytes).map_err(|error| error.to_string().into())
    }

    /// The wait times a random factor: nodes that failed together must not retry together.
    fn jittered(&self, wait: Duration, factors: Range<f64>) -> Duration {
        let mut bytes = [0; 4];
        let share = self.fill_random(&mut bytes);
        let share = share.map_or(0.5, |()| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX));
        wait.mul_f64(factors.start + share * (factors.end - factors.start))
    }

    /// A new id, greater than those before.
    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

impl dyn Runtime {
    /// Runs a task in the background. The receiver fails if the task panics or is dropped.
    pub(crate) fn spawn_for<F>(&self, task: F) -> oneshot::Receiver<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (answer, receiver) = oneshot::channel();
        // The caller may no longer wait.
        self.spawn(Box::pin(async { _ = answer.send(task.await) }));
        receiver
    }

    /// Runs long work and waits for it. `None` if it panicked or the runtime ended.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, receiver) = oneshot::channel();
        self.compute(Box::new(|| _ = answer.send(work())));
        receiver.await.ok()
    }

    /// 0 if the system has no randomness.
    pub(crate) fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_random(&mut bytes).map_or(0, |()| u64::from_le_bytes(bytes))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRuntime;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Runtime for SystemRuntime {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        STARTED.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jittered_wait_varies_within_its_range() {
        let wait = |_| SystemRuntime.jittered(Duration::from_secs(4), 0.75..1.25).as_secs_f64();
        let waits: Vec<f64> = (0..64).map(wait).collect();
        assert!(waits.iter().all(|wait| (3.0..=5.0).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| wait.total_cmp(&waits[0]).is_ne()), "{waits:?}");
    }
}

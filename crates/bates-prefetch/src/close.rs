//! The report of unused numbers when a buffer is closed: one report, which every caller of `close` waits for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::buffer::Rest;
use crate::error::CloseError;
use crate::prefetched::Shared;
use crate::source::Source;

/// How many unused numbers were reported, or why not all of them were.
type Outcome<E> = Result<u64, CloseError<E>>;

/// What became of the unused numbers of a buffer that was closed.
pub(crate) struct Report<E> {
    unused: AtomicU64,
    reported: AtomicU64,
    error: OnceLock<Arc<E>>,
    outcome: watch::Sender<Option<Outcome<E>>>,
}

impl<E> Report<E> {
    pub(crate) fn new() -> Self {
        let (unused, reported) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { unused, reported, error: OnceLock::new(), outcome: watch::Sender::new(None) }
    }

    /// Counts numbers that were unused when the buffer was closed.
    pub(crate) fn expect(&self, rests: &[Rest]) {
        self.unused.fetch_add(rests.iter().map(|rest| rest.numbers).sum(), Ordering::Relaxed);
    }

    /// Reports them to the source, lease by lease. An error does not keep the leases after it from being reported.
    pub(crate) async fn send<S: Source<Error = E>>(&self, source: &S, rests: Vec<Rest>) {
        for rest in rests {
            match rest.give_back(source).await {
                Ok(numbers) => {
                    self.reported.fetch_add(numbers, Ordering::Relaxed);
                }
                Err(error) => {
                    self.error.get_or_init(|| Arc::new(error));
                }
            }
        }
    }

    pub(crate) async fn outcome(&self) -> Outcome<E> {
        let mut outcome = self.outcome.subscribe();
        let outcome = outcome.wait_for(Option::is_some).await.expect("the sender is borrowed here");
        outcome.clone().expect("waited for it")
    }

    /// Nothing can be reported any more.
    pub(crate) fn runtime_ended(&self) {
        self.end(Err(CloseError::RuntimeEnded { numbers: self.missing() }));
    }

    fn missing(&self) -> u64 {
        self.unused.load(Ordering::Relaxed) - self.reported.load(Ordering::Relaxed)
    }

    /// Ends the report, unless it has ended.
    fn end(&self, ended: Outcome<E>) {
        self.outcome.send_if_modified(|outcome| {
            let is_first = outcome.is_none();
            outcome.get_or_insert(ended);
            is_first
        });
    }
}

/// Writes the report of a buffer that was closed. It runs as a task, so that a caller of `close` may stop waiting.
pub(crate) async fn write_report<S: Source>(writing: Writing<S>, rests: Vec<Rest>) {
    let Writing(shared) = &writing;
    let Shared { source, report, under_way, .. } = &**shared;
    let limit = source.report_time();
    let sent = timeout(limit, async {
        report.send(&**source, rests).await;
        // A refill that is under way reports what it brings, and then releases this lock.
        let _refill = under_way.lock().await;
    });
    let is_late = sent.await.is_err();
    report.end(match report.error.get() {
        _ if is_late => Err(CloseError::TimedOut { numbers: report.missing(), limit }),
        Some(error) => Err(CloseError::Failed { numbers: report.missing(), error: error.clone() }),
        None => Ok(report.reported.load(Ordering::Relaxed)),
    });
}

/// A report that is being written. If its task is dropped with the runtime, those who wait get an error.
pub(crate) struct Writing<S: Source>(pub(crate) Arc<Shared<S>>);

impl<S: Source> Drop for Writing<S> {
    fn drop(&mut self) {
        self.0.report.runtime_ended();
    }
}

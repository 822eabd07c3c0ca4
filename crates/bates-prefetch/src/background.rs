//! Background work: one task that refills until the last handle is dropped, and the report of unused numbers when a
//! buffer is closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::buffer::Rest;
use crate::error::CloseError;
use crate::prefetched::Shared;
use crate::source::Source;

/// Leases are given back by then, so that one without a report for a day belongs to a crashed program.
const HELD_MAX: Duration = Duration::from_hours(12);

/// After a failure; doubles up to the longest, and ends early if a caller waits.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn keep_filled<S: Source>(ending: Ending<S>, wanted: Arc<Notify>) {
    let Ending(shared) = &ending;
    let (mut too_old, mut failures): (Option<Instant>, u32) = (None, 0);
    loop {
        tokio::select! {
            () = wanted.notified() => {}
            () = at(too_old) => {}
        }
        let Some(failed) = round(shared).await else { return };
        failures = if failed { failures.saturating_add(1) } else { 0 };
        let Some(strong) = shared.upgrade() else { return };
        too_old = strong.buffer.oldest().map(|oldest| oldest + HELD_MAX);
        let waiter = strong.waiter.clone();
        drop(strong);
        if failures > 0 {
            let pause = PAUSE.saturating_mul(1 << (failures - 1).min(10)).min(PAUSE_MAX);
            // A waiting caller, or the drop of the last handle, ends the pause.
            let _ = timeout(pause, waiter.notified()).await;
        }
    }
}

/// Closes a buffer whose refill task is dropped with its runtime; callers would wait for ever.
pub(crate) struct Ending<S: Source>(pub(crate) Weak<Shared<S>>);

impl<S: Source> Drop for Ending<S> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade().filter(|shared| !shared.is_forked())
            && shared.end().is_some()
        {
            shared.report.runtime_ended();
        }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Gives back leases that are too old, and leases missing numbers. Answers whether it failed, or `None` after the last
/// handle is dropped. Keeps no handle while it waits for the source; a lease that arrives too late is given back.
async fn round<S: Source>(shared: &Weak<Shared<S>>) -> Option<bool> {
    let strong = shared.upgrade().filter(|shared| !shared.is_forked())?;
    let (source, now) = (strong.source.clone(), strong.now());
    // The report of a closed buffer waits for this lock.
    let under_way = strong.under_way.clone();
    let _under_way = under_way.lock().await;
    let outdated = strong.buffer.outdated(now, now.steady.checked_sub(HELD_MAX));
    let wants = strong.buffer.refill(now, strong.waited_for.load(Ordering::Relaxed));
    drop(strong);
    give_back(&*source, outdated).await;
    let Some((count, used)) = wants else { return Some(false) };
    let leased = source.lease(count, used.clone()).await;
    let Some(strong) = shared.upgrade() else {
        give_back(&*source, leased.ok().map(Rest::all_of)).await;
        return None;
    };
    match leased.map(|lease| strong.add(lease, now, &used)) {
        Ok(Ok(())) => Some(false),
        Ok(Err(rest)) => {
            let rests = vec![rest];
            strong.report.expect(&rests);
            strong.report.send(&*source, rests).await;
            Some(false)
        }
        Err(error) => {
            strong.ended.send_replace(Some(Arc::new(error)));
            Some(true)
        }
    }
}

/// Reports ended leases, ignoring errors.
pub(crate) async fn give_back<S: Source>(source: &S, rests: impl IntoIterator<Item = Rest>) {
    for rest in rests {
        let _ = rest.give_back(source).await;
    }
}

type Outcome<E> = Result<u64, CloseError<E>>;

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

    pub(crate) fn expect(&self, rests: &[Rest]) {
        self.unused.fetch_add(rests.iter().map(|rest| rest.numbers).sum(), Ordering::Relaxed);
    }

    /// Goes on after an error, and keeps the first one.
    pub(crate) async fn send<S: Source<Error = E>>(&self, source: &S, rests: Vec<Rest>) {
        for rest in rests {
            match rest.give_back(source).await {
                Ok(numbers) => _ = self.reported.fetch_add(numbers, Ordering::Relaxed),
                Err(error) => _ = self.error.get_or_init(|| Arc::new(error)),
            }
        }
    }

    pub(crate) async fn outcome(&self) -> Outcome<E> {
        let mut outcome = self.outcome.subscribe();
        let outcome = outcome.wait_for(Option::is_some).await.expect("the sender is borrowed here");
        outcome.clone().expect("just waited for")
    }

    pub(crate) fn runtime_ended(&self) {
        self.end(Err(CloseError::RuntimeEnded { numbers: self.missing() }));
    }

    fn missing(&self) -> u64 {
        self.unused.load(Ordering::Relaxed) - self.reported.load(Ordering::Relaxed)
    }

    fn end(&self, ended: Outcome<E>) {
        self.outcome.send_if_modified(|outcome| {
            let is_first = outcome.is_none();
            outcome.get_or_insert(ended);
            is_first
        });
    }
}

/// Runs as a task, so that a caller of `close` may stop waiting.
pub(crate) async fn write_report<S: Source>(writing: Writing<S>, rests: Vec<Rest>) {
    let Writing(shared) = &writing;
    let Shared { source, report, under_way, .. } = &**shared;
    let limit = source.report_timeout();
    let sent = timeout(limit, async {
        report.send(&**source, rests).await;
        // A refill under way reports its lease, and then releases this lock.
        let _refill = under_way.lock().await;
    });
    let is_late = sent.await.is_err();
    report.end(match report.error.get() {
        _ if is_late => Err(CloseError::TimedOut { numbers: report.missing(), limit }),
        Some(error) => Err(CloseError::Failed { numbers: report.missing(), error: error.clone() }),
        None => Ok(report.reported.load(Ordering::Relaxed)),
    });
}

/// Ends the report if its task is dropped with the runtime.
pub(crate) struct Writing<S: Source>(pub(crate) Arc<Shared<S>>);

impl<S: Source> Drop for Writing<S> {
    fn drop(&mut self) {
        self.0.report.runtime_ended();
    }
}

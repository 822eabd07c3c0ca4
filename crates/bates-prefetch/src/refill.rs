//! More numbers, in the background: one refill at a time, by one task, which ends with the last handle.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::buffer::Rest;
use crate::prefetched::Shared;
use crate::source::Source;

/// What was held for so long is given back, so that a lease of which nothing was heard for a day is one of a program that
/// crashed.
const HELD_MAX: Duration = Duration::from_hours(12);

/// After a failure, this long at first, twice as long after each, and at the most so long: unless somebody waits.
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
            // Who waits is not kept waiting; and who drops the last handle is not, either.
            let _ = tokio::time::timeout(pause, waiter.notified()).await;
        }
    }
}

/// Closes a buffer whose refill task was dropped with its runtime, perhaps before it ever ran: a caller would wait for
/// ever.
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

/// Gives back what is too old, and leases what is missing. `None` if nobody has a handle any more; else whether it failed.
///
/// While the source is asked no handle is kept: the last one may be dropped meanwhile, and what comes then goes back.
async fn round<S: Source>(shared: &Weak<Shared<S>>) -> Option<bool> {
    let strong = shared.upgrade().filter(|shared| !shared.is_forked())?;
    let (source, now) = (strong.source.clone(), strong.now());
    // Whoever closes waits for the end of this.
    let under_way = strong.under_way.clone();
    let _under_way = under_way.lock().await;
    let outdated = strong.buffer.outdated(now, now.steady.checked_sub(HELD_MAX));
    let wants = strong.refill(now);
    drop(strong);
    give_back(&*source, outdated).await;
    let Some((count, used)) = wants else { return Some(false) };
    let given = source.lease(count, used.clone()).await;
    let Some(strong) = shared.upgrade() else {
        give_back(&*source, given.ok().map(Rest::all_of)).await;
        return None;
    };
    match given.map(|given| strong.add(given, now, &used)) {
        Ok(Ok(())) => Some(false),
        Ok(Err(rest)) => {
            let rests = vec![rest];
            strong.report.expect(&rests);
            strong.report.send(&*source, rests).await;
            Some(false)
        }
        Err(error) => {
            strong.failed(error);
            Some(true)
        }
    }
}

/// Reports leases that end, whatever comes of it.
pub(crate) async fn give_back<S: Source>(source: &S, rests: impl IntoIterator<Item = Rest>) {
    for rest in rests {
        let _ = rest.give_back(source).await;
    }
}

//! The handle to prefetched numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bates_pattern::{Number, Scope};
use bates_process::ProcessGuard;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::Instant;
use uuid::Uuid;

use crate::background::{Ending, Report, Writing, give_back, keep_filled, write_report};
use crate::buffer::{Buffer, Rest};
use crate::error::{CloseError, TakeError};
use crate::number::{HeldNumber, UnrenderedNumber};
use crate::reserve::Moment;
use crate::size::Prefetch;
use crate::source::{Lease, LeaseContent, Source};

const TAKE_MAX: usize = 1_000_000;

/// Prefetched numbers of one scope. Clones share them, and any thread may take from any clone.
///
/// Dropping the last clone reports unused numbers in the background, and they become gaps; a program that ends at once
/// should [`close`](Prefetched::close) first. A crash loses the numbers and never repeats them. In a forked process
/// every call answers [`TakeError::Forked`].
pub struct Prefetched<S: Source>(Arc<Shared<S>>);

impl<S: Source> Clone for Prefetched<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

pub(crate) struct Shared<S: Source> {
    pub(crate) source: Arc<S>,
    pub(crate) buffer: Buffer,
    /// Set by the first positions.
    scope: OnceLock<Arc<Scope>>,
    /// How many numbers callers wait for.
    pub(crate) waited_for: AtomicU64,
    leases: AtomicU64,
    /// Ends a pause after a failure.
    pub(crate) waiter: Arc<Notify>,
    /// Held while something is leased or given back in the background.
    pub(crate) under_way: Arc<Mutex<()>>,
    pub(crate) report: Report<S::Error>,
    /// Notified at the end of each refill, with its error.
    pub(crate) ended: watch::Sender<Option<Arc<S::Error>>>,
    runtime: Handle,
    process: ProcessGuard,
}

impl<S: Source> Prefetched<S> {
    /// Prefetches numbers of a source, starting at once; a task of the runtime refills them.
    pub fn new(source: S, prefetch: Prefetch, runtime: &Handle) -> Self {
        let shared = Arc::new(Shared {
            source: Arc::new(source),
            buffer: Buffer::new(prefetch),
            scope: OnceLock::new(),
            waited_for: AtomicU64::new(0),
            leases: AtomicU64::new(0),
            waiter: Arc::default(),
            under_way: Arc::default(),
            report: Report::new(),
            ended: watch::Sender::new(None),
            runtime: runtime.clone(),
            process: ProcessGuard::default(),
        });
        if shared.source.is_forked() {
            shared.buffer.close();
            return Self(shared);
        }
        let wanted = shared.buffer.wanted.clone();
        wanted.notify_one();
        runtime.spawn(keep_filled(Ending(Arc::downgrade(&shared)), wanted));
        Self(shared)
    }

    /// The next number, from memory or from the next refill.
    pub async fn next(&self) -> Result<Number, TakeError<S::Error>> {
        match self.0.take() {
            Some(held) => Ok(self.unrendered(held).into_number()),
            None => Ok(self.take(1).await?.swap_remove(0)),
        }
    }

    /// The next number if one is in memory. Never waits, and needs no runtime.
    pub fn try_next(&self) -> Result<Number, TakeError<S::Error>> {
        self.try_next_unrendered().map(UnrenderedNumber::into_number)
    }

    /// As [`try_next`](Prefetched::try_next), without rendering the number yet: one atomic subtraction.
    #[inline]
    pub fn try_next_unrendered(&self) -> Result<UnrenderedNumber<'_>, TakeError<S::Error>> {
        self.0.take().map(|held| self.unrendered(held)).ok_or_else(|| self.0.why_empty())
    }

    /// The next `count` numbers, up to 1,000,000: at least one, and fewer than `count` where the scope ends or a refill
    /// fails. The next call then returns the error.
    pub async fn take(&self, count: usize) -> Result<Vec<Number>, TakeError<S::Error>> {
        if count > TAKE_MAX {
            return Err(TakeError::TooMany { max: TAKE_MAX });
        }
        if self.0.is_forked() {
            return Err(TakeError::Forked);
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let held = self.0.wait_for(count).await?;
        Ok(held.into_iter().map(|held| self.unrendered(held).into_number()).collect())
    }

    #[inline]
    fn unrendered(&self, held: HeldNumber) -> UnrenderedNumber<'_> {
        UnrenderedNumber { held, scope: &self.0.scope }
    }

    /// How many numbers are in memory.
    pub fn cached(&self) -> u64 {
        if self.0.is_forked() { 0 } else { self.0.buffer.left() }
    }

    /// How many leases the source has given so far.
    pub fn leases(&self) -> u64 {
        self.0.leases.load(Ordering::Relaxed)
    }

    /// Reports all prefetched numbers of all clones as unused, and answers how many became gaps. There is one report:
    /// every call waits for it and answers the same. A number that could not be reported is uncertain after a day.
    pub async fn close(&self) -> Result<u64, CloseError<S::Error>> {
        if self.0.is_forked() || self.0.source.is_forked() {
            return Err(CloseError::Forked);
        }
        if let Some(rests) = self.0.end() {
            self.0.runtime.spawn(write_report(Writing(self.0.clone()), rests));
        }
        self.0.report.outcome().await
    }
}

impl<S: Source> Shared<S> {
    /// Takes everything out and wakes all waiting callers. `None` if it was closed before.
    pub(crate) fn end(&self) -> Option<Vec<Rest>> {
        let rests = self.buffer.close()?;
        self.report.expect(&rests);
        self.ended.send_replace(None);
        Some(rests)
    }

    /// Invariant: a forked process takes no number and no lock.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.process.is_forked()
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { steady: Instant::now(), wall: self.source.now() }
    }

    #[inline]
    fn take(&self) -> Option<HeldNumber> {
        if self.is_forked() {
            return None;
        }
        match self.buffer.take() {
            Some(position) => Some(HeldNumber::Position(position)),
            None => self.buffer.take_from_reserve(|| self.now()),
        }
    }

    /// Takes all of them at once, so that a cancelled call has taken nothing.
    async fn wait_for(&self, count: usize) -> Result<Vec<HeldNumber>, TakeError<S::Error>> {
        self.waited_for.fetch_add(count as u64, Ordering::Relaxed);
        let _waiting = Waiting { shared: self, count: count as u64 };
        let mut failed = None;
        loop {
            // Before the buffer is checked, so that no end is missed.
            let mut ended = self.ended.subscribe();
            if let Some(taken) = self.buffer.take_many(count, failed.is_some(), self.now()) {
                return Ok(taken);
            }
            if self.buffer.is_closed() {
                return Err(self.why_empty());
            }
            if let Some(error) = failed {
                return Err(TakeError::Failed(error));
            }
            // Starts a refill, also during a pause after a failure.
            self.buffer.wanted.notify_one();
            self.waiter.notify_one();
            // Invariant: a call that waits during a fork takes in the parent only.
            let woken = self.process.unless_forked(ended.changed()).await;
            let _ = woken.ok_or(TakeError::Forked)?;
            failed.clone_from(&ended.borrow());
        }
    }

    #[cold]
    fn why_empty(&self) -> TakeError<S::Error> {
        if self.is_forked() || self.source.is_forked() {
            return TakeError::Forked;
        }
        if self.buffer.is_closed() {
            return TakeError::Closed;
        }
        self.ended.borrow().clone().map_or(TakeError::Refilling, TakeError::Failed)
    }

    /// Adds a lease. If the buffer was closed meanwhile, answers with the lease to give back.
    pub(crate) fn add(&self, lease: Lease, asked: Moment, used: &[Uuid]) -> Result<(), Rest> {
        self.leases.fetch_add(1, Ordering::Relaxed);
        if let LeaseContent::Ranges(_, scope) = &lease.content {
            // Invariant: the scope is set before the first position can be taken.
            self.scope.get_or_init(|| scope.clone());
        }
        self.buffer.add(lease, asked, used)?;
        self.ended.send_replace(None);
        Ok(())
    }
}

impl<S: Source> Drop for Shared<S> {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        // Wakes the task, which then ends.
        self.buffer.wanted.notify_one();
        self.waiter.notify_one();
        let rests = self.buffer.close().unwrap_or_default();
        if !rests.is_empty() {
            let source = self.source.clone();
            self.runtime.spawn(async move { give_back(&*source, rests).await });
        }
    }
}

/// Ends the wait of a call, also of a cancelled one.
struct Waiting<'p, S: Source> {
    shared: &'p Shared<S>,
    count: u64,
}

impl<S: Source> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        self.shared.waited_for.fetch_sub(self.count, Ordering::Relaxed);
    }
}

//! Positions for one call: from memory, or granted for this call where memory could not keep the promise.

use tokio::sync::SemaphorePermit;

use super::Dispenser;
use super::burned::Awaited;
use super::cell::{Cell, Outcome};
use super::shards::At;
use crate::error::IssueError;
use crate::ledger::{Grant, Purpose, Tail};
use crate::range::Taken;
use crate::scope::{Place, ScopeKey};
use crate::series::{Promise, Series};
use crate::store::{Store, StoreError};

/// Max calls on their way to the store together. They share commits, so more would only wait in memory.
pub(super) const CALLS_MAX: usize = 10_000;

/// Adopted numbers that one call skips before it is refused. Each costs three commits.
const CUTS_MAX: usize = 64;

#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// In any number of ranges.
    Any(u64),
    /// In one range: `INCRBY` answers with the last position, and the caller owns all of them.
    Run(u64),
}

impl Wanted {
    #[inline]
    pub(super) const fn count(self) -> u64 {
        match self {
            Self::Any(count) | Self::Run(count) => count,
        }
    }

    pub(super) const fn is_run(self) -> bool {
        matches!(self, Self::Run(_))
    }
}

#[derive(Clone, Copy)]
struct Call<'a> {
    series: &'a Series,
    scope: &'a ScopeKey,
    wanted: Wanted,
}

impl Call<'_> {
    fn place(&self) -> Place {
        self.series.place(self.scope)
    }
}

impl<S: Store> Dispenser<S> {
    /// The next `count` positions of a scope: all of them, or an error. Panics if `count` is 0. A caller that stops
    /// waiting may leave a gap, never positions that another caller gets again.
    pub async fn take(&self, series: &Series, scope: &ScopeKey, count: u64) -> Result<Taken, IssueError> {
        self.take_wanted(series, scope, Wanted::Any(count)).await
    }

    /// Invariant: memory gives a run from one range, and the store grants one range, so a run never includes positions
    /// of another caller. In an ordered series, what lies before a run is recorded as lost before the run is taken.
    pub(crate) async fn take_wanted(
        &self,
        series: &Series,
        scope: &ScopeKey,
        wanted: Wanted,
    ) -> Result<Taken, IssueError> {
        assert!(wanted.count() > 0, "at least one position is asked for");
        let wanted = if wanted.count() == 1 { Wanted::Any(1) } else { wanted };
        let call = Call { series, scope, wanted };
        self.check_process(call)?;
        if let Some(purpose) = self.direct(series) {
            return self.issue(call, purpose).await;
        }
        if let Some(answer) = self.take_held(call, false).await {
            return answer;
        }
        match self.issue_once(call, Purpose::HandOut).await {
            // The space may be at its end, or an adopted number may follow too soon: a lease reaches past those.
            Err(exhausted @ (IssueError::Exhausted { .. } | IssueError::HeldElsewhere { .. })) => {
                self.take_held(call, true).await.unwrap_or(Err(exhausted))
            }
            answer => answer,
        }
    }

    /// `None` if the store should be asked for a run alone; never with `is_patient`.
    async fn take_held(&self, call: Call<'_>, is_patient: bool) -> Option<Result<Taken, IssueError>> {
        // Asked under the shard's lock: once a closed series was swept from a shard, nothing of it is added again.
        let may_make = || self.may_hold(call.series);
        let take = |cell: &mut Cell| cell.take(call.wanted, is_patient);
        let at = At { series: call.series, scope: call.scope.as_str() };
        let Some(seen) = self.inner.shards.look_or_make(at, may_make, take) else {
            return Some(match self.direct(call.series) {
                Some(purpose) => self.issue(call, purpose).await,
                None => Err(self.refusal(call.series, call.scope)),
            });
        };
        let (outcome, fetch) = seen?;
        self.inner.start_refill(fetch);
        Some(match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::Waits(receiver) => {
                let mut awaited = Awaited { inner: &self.inner, place: call.place(), receiver };
                // Invariant: a call that waits when the process is forked answers in the first process only.
                let answer = self.inner.process.unless_forked(&mut awaited.receiver).await;
                self.check_process(call)
                    .and_then(|()| answer.and_then(Result::ok).unwrap_or(Err(IssueError::Stopping)))
            }
        })
    }

    /// The hot path: takes held positions without waiting or building a key. `None` means: ask [`Dispenser::take`].
    pub fn try_take(&self, series: &Series, scope: &str, count: u64) -> Option<Taken> {
        self.try_take_wanted(series, scope, Wanted::Any(count))
    }

    /// Takes a run only from the range in use.
    #[inline]
    pub(crate) fn try_take_wanted(&self, series: &Series, scope: &str, wanted: Wanted) -> Option<Taken> {
        if wanted.count() == 0 || !self.may_hold(series) {
            return None;
        }
        let (taken, fetch) = self.inner.shards.look(At { series, scope }, |cell| cell.try_take(wanted))??;
        self.inner.start_refill(fetch);
        Some(taken)
    }

    fn check_process(&self, call: Call<'_>) -> Result<(), IssueError> {
        if !self.is_forked() {
            return Ok(());
        }
        Err(IssueError::Store { place: call.place(), error: StoreError::Forked })
    }

    /// For which purpose the store itself grants each call, where no lease in memory could keep the promise: commits
    /// order the calls to several nodes.
    pub(crate) fn direct(&self, series: &Series) -> Option<Purpose> {
        match series.promise() {
            Promise::Gapless => Some(Purpose::Issue),
            Promise::Ordered if self.inner.store.is_shared() || series.is_out_of_memory() => {
                Some(Purpose::HandOut)
            }
            Promise::Ordered | Promise::Unique => None,
        }
    }

    /// From now on the store grants each call of the series. On return, nothing of it is held.
    pub(crate) async fn leave_memory(&self, series: &Series) {
        // In a fork the store refuses the next call.
        if self.is_forked() {
            return;
        }
        let close = async { _ = self.close_all(Some(series.name())).await };
        series.memory().leave(close).await;
    }

    pub(crate) fn permit(&self, place: &Place) -> Result<SemaphorePermit<'_>, IssueError> {
        let busy = |_| IssueError::Busy { place: place.clone(), waiting: CALLS_MAX };
        self.inner.direct_calls.try_acquire().map_err(busy)
    }

    pub(crate) fn calls_under_way(&self) -> usize {
        CALLS_MAX - self.inner.direct_calls.available_permits()
    }

    pub(crate) fn refusal(&self, series: &Series, scope: &ScopeKey) -> IssueError {
        if self.is_closing() {
            IssueError::Stopping
        } else {
            IssueError::Retired { place: series.place(scope) }
        }
    }

    /// Asks the store for this call alone. Where an adopted number follows too soon for a run, the positions before it
    /// are given up; a gapless series refuses instead.
    async fn issue(&self, call: Call<'_>, purpose: Purpose) -> Result<Taken, IssueError> {
        let mut answer = self.issue_once(call, purpose).await;
        let mut cuts = 0;
        while let Err(error) = &answer
            && call.wanted.is_run()
            && purpose == Purpose::HandOut
            && cuts < CUTS_MAX
            && self.give_up_cut(call, error.left()).await?
        {
            answer = self.issue_once(call, purpose).await;
            cuts += 1;
        }
        answer
    }

    async fn issue_once(&self, call: Call<'_>, purpose: Purpose) -> Result<Taken, IssueError> {
        let Call { series, scope, wanted } = call;
        if self.is_closing() || series.is_retired() {
            return Err(self.refusal(series, scope));
        }
        let place = call.place();
        let _permit = self.permit(&place)?;
        let want = series.want(place.clone(), wanted.count(), purpose);
        let granted = self.inner.grant_directly(want).await;
        self.inner.keep_up();
        let refused = |error| IssueError::of_grant(&place, wanted.count(), series.end(), error);
        granted.map(|grant| grant.lease.into()).map_err(refused)
    }

    /// Gives up the `left` positions before an adopted number, if there is room for a run behind it.
    async fn give_up_cut(&self, call: Call<'_>, left: u64) -> Result<bool, IssueError> {
        let (series, store, count) = (call.series, &self.inner.store, call.wanted.count());
        if left == 0 || left >= count {
            return Ok(false);
        }
        let place = call.place();
        let failed = IssueError::of_store(&place);
        let next = store.cursor(place.clone()).await.map_err(&failed)?.map_or(0, |cursor| cursor.next);
        let next = next.max(series.start().value());
        if series.end().saturating_sub(next) <= left + count {
            return Ok(false);
        }
        let granted = store.grant(series.want(place.clone(), left, Purpose::Lease)).await;
        let Ok(Grant { lease, .. }) = granted else { return Ok(false) };
        // No cursor has this version, so the cursor stays and the positions are recorded as lost.
        let tail = Tail { place: place.clone(), lease, version: 0, lost: Vec::new() };
        store.surrender(tail).await.map_err(failed)?;
        Ok(true)
    }
}

//! Positions for one call: from memory or, if that could not keep the promise, granted *directly*, for this call alone.

use std::sync::Arc;

use tokio::sync::SemaphorePermit;

use super::ahead::Rendering;
use super::burned::PendingTake;
use super::cell::{Cell, TakeOutcome};
use super::shards::{CellId, NoCell};
use super::{Dispenser, Popped};
use crate::error::IssueError;
use crate::ledger::{Grant, GrantPurpose, ReleaseRequest};
use crate::range::TakenPositions;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::{Promise, Series};
use crate::store::{Store, StoreError};

/// Max direct grants under way. They share commits, so more would only wait in memory.
pub(super) const CALLS_MAX: usize = 10_000;

/// Adopted numbers that one call skips before it is refused. Each costs three commits.
const CUTS_MAX: usize = 64;

#[derive(Clone, Copy)]
pub(crate) enum TakeRequest {
    /// Positions in any number of ranges.
    Any(u64),
    /// Consecutive positions: `INCRBY` answers with the last, and the caller owns all of them.
    Run(u64),
}

impl TakeRequest {
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

pub(crate) type TakeResult = Result<TakenPositions, IssueError>;

#[derive(Clone, Copy)]
struct Call<'a> {
    series: &'a Series,
    scope: &'a ScopeKey,
    wanted: TakeRequest,
}

impl Call<'_> {
    fn scope_id(&self) -> ScopeId {
        self.series.scope_id(self.scope)
    }
}

impl<S: Store> Dispenser<S> {
    /// The next `count` positions of a scope: all of them, or an error. Panics if `count` is 0. A caller that stops
    /// waiting may leave a gap, never positions that another caller gets again.
    pub async fn take(&self, series: &Series, scope: &ScopeKey, count: u64) -> TakeResult {
        self.take_request(series, scope, TakeRequest::Any(count)).await
    }

    /// Invariant: a run comes from one held range or from one grant, so it never includes positions of another caller. In
    /// an ordered series, held positions before a run are recorded as lost before the run is taken.
    pub(crate) async fn take_request(
        &self,
        series: &Series,
        scope: &ScopeKey,
        wanted: TakeRequest,
    ) -> TakeResult {
        assert!(wanted.count() > 0, "at least one position is wanted");
        let wanted = if wanted.count() == 1 { TakeRequest::Any(1) } else { wanted };
        let call = Call { series, scope, wanted };
        self.check_process(call)?;
        if let Some(purpose) = self.direct_purpose(series) {
            return self.grant_call(call, purpose).await;
        }
        if let Some(answer) = self.take_held(call, false).await {
            return answer;
        }
        match self.grant_call_once(call, GrantPurpose::HandOut).await {
            // The space may end, or an adopted number may follow too soon: a held range may reach past it.
            Err(exhausted @ (IssueError::Exhausted { .. } | IssueError::HeldElsewhere { .. })) => {
                self.take_held(call, true).await.unwrap_or(Err(exhausted))
            }
            answer => answer,
        }
    }

    /// `None`, never with `must_wait`: the store should grant the run directly.
    async fn take_held(&self, call: Call<'_>, must_wait: bool) -> Option<TakeResult> {
        // Called under the shard's lock: no cell of a closed series is added after the sweep of its shard.
        let may_create = || self.may_hold(call.series);
        let take = |cell: &mut Cell| cell.take(call.wanted, must_wait);
        let id = CellId { series: call.series, scope: call.scope.as_str() };
        let taken = match self.inner.shards.with_cell_or_new(id, may_create, take) {
            Ok(taken) => taken,
            Err(NoCell::Full) => return Some(Err(IssueError::MemoryFull { scope_id: call.scope_id() })),
            Err(NoCell::Forbidden) => {
                return Some(match self.direct_purpose(call.series) {
                    Some(purpose) => self.grant_call(call, purpose).await,
                    None => Err(self.refusal(call.series, call.scope)),
                });
            }
        };
        let (outcome, refill) = taken?;
        self.inner.start_refill(refill);
        Some(match outcome {
            TakeOutcome::Answered(answer) => answer,
            TakeOutcome::Waits(receiver) => {
                let mut pending = PendingTake { inner: &self.inner, scope_id: call.scope_id(), receiver };
                // Invariant: a call that waits when the process is forked answers in the parent only.
                let answer = self.inner.process.unless_forked(&mut pending.receiver).await;
                let answer = answer.and_then(Result::ok).unwrap_or(Err(IssueError::Stopping));
                self.check_process(call).and(answer)
            }
        })
    }

    /// The hot path: takes held positions without waiting or building a key. After `None`, call [`Dispenser::take`].
    pub fn try_take(&self, series: &Series, scope: &str, count: u64) -> Option<TakenPositions> {
        self.try_take_request(series, scope, TakeRequest::Any(count))
    }

    /// Takes a run only from the first held range.
    #[inline]
    pub(crate) fn try_take_request(
        &self,
        series: &Series,
        scope: &str,
        wanted: TakeRequest,
    ) -> Option<TakenPositions> {
        if wanted.count() == 0 || !self.may_hold(series) {
            return None;
        }
        let id = CellId { series, scope };
        let (taken, refill) = self.inner.shards.with_cell(id, |cell| cell.try_take(wanted))??;
        self.inner.start_refill(refill);
        Some(taken)
    }

    /// As [`Dispenser::try_take`], for one number, which a busy scope has rendered already. `open` tells how to render.
    #[inline]
    pub(crate) fn try_pop(
        &self,
        series: &Series,
        scope: &str,
        open: impl FnOnce() -> Option<Rendering>,
        answer: impl FnOnce(&[u8]),
    ) -> Option<Popped> {
        if !self.may_hold(series) {
            return None;
        }
        let (id, rooms) = (CellId { series, scope }, &self.inner.ahead_rooms);
        let pop = |cell: &mut Cell| cell.try_pop(series, rooms, open, answer);
        let (popped, refill) = self.inner.shards.with_cell(id, pop)??;
        self.inner.start_refill(refill);
        Some(popped)
    }

    /// As [`Dispenser::try_take`], with the way to render them if the scope has it.
    pub(crate) fn try_take_to_render(
        &self,
        series: &Series,
        scope: &str,
        count: u64,
        open: impl FnOnce() -> Option<Rendering>,
    ) -> Option<(TakenPositions, Option<Arc<Rendering>>)> {
        if count == 0 || !self.may_hold(series) {
            return None;
        }
        let rooms = &self.inner.ahead_rooms;
        let take = |cell: &mut Cell| {
            let taken = cell.try_take(TakeRequest::Any(count))?;
            Some((taken, cell.rendering(series, rooms, open)))
        };
        let ((taken, refill), rendering) = self.inner.shards.with_cell(CellId { series, scope }, take)??;
        self.inner.start_refill(refill);
        Some((taken, rendering))
    }

    fn check_process(&self, call: Call<'_>) -> Result<(), IssueError> {
        if !self.is_forked() {
            return Ok(());
        }
        Err(IssueError::Store { scope_id: call.scope_id(), error: StoreError::Forked })
    }

    /// The purpose of direct grants, if memory could not keep the promise: between nodes, only commits keep the order.
    pub(crate) fn direct_purpose(&self, series: &Series) -> Option<GrantPurpose> {
        let is_direct = || self.inner.store.is_shared() || series.is_uncached();
        match series.promise() {
            Promise::Gapless => Some(GrantPurpose::Issue),
            Promise::Ordered if is_direct() => Some(GrantPurpose::HandOut),
            Promise::Ordered | Promise::Unique => None,
        }
    }

    /// From now on the store grants each call of the series directly. On return, nothing of it is held.
    pub(crate) async fn stop_caching(&self, series: &Series) {
        // In a fork the store refuses the next call.
        if self.is_forked() {
            return;
        }
        let close = async { _ = self.close_all(Some(series.name()), None).await };
        series.caching().stop(close).await;
    }

    pub(crate) fn permit(&self, scope_id: &ScopeId) -> Result<SemaphorePermit<'_>, IssueError> {
        let busy = |_| IssueError::Busy { scope_id: scope_id.clone(), waiting: CALLS_MAX };
        self.inner.direct_calls.try_acquire().map_err(busy)
    }

    pub(crate) fn calls_under_way(&self) -> usize {
        CALLS_MAX - self.inner.direct_calls.available_permits()
    }

    pub(crate) fn refusal(&self, series: &Series, scope: &ScopeKey) -> IssueError {
        let scope_id = series.scope_id(scope);
        if self.is_closing() { IssueError::Stopping } else { IssueError::Retired { scope_id } }
    }

    /// Has the store grant this call directly. If an adopted number follows too soon for a run, the positions before it
    /// are recorded as lost; a gapless series refuses instead.
    async fn grant_call(&self, call: Call<'_>, purpose: GrantPurpose) -> TakeResult {
        let mut answer = self.grant_call_once(call, purpose).await;
        let mut cuts = 0;
        while let Err(error) = &answer
            && call.wanted.is_run()
            && purpose == GrantPurpose::HandOut
            && cuts < CUTS_MAX
            && self.lose_before_adopted(call, error.left()).await?
        {
            answer = self.grant_call_once(call, purpose).await;
            cuts += 1;
        }
        answer
    }

    async fn grant_call_once(&self, call: Call<'_>, purpose: GrantPurpose) -> TakeResult {
        let Call { series, scope, wanted } = call;
        if self.is_closing() || series.is_retired() {
            return Err(self.refusal(series, scope));
        }
        let scope_id = call.scope_id();
        let _permit = self.permit(&scope_id)?;
        let request = series.grant_request(scope_id.clone(), wanted.count(), purpose);
        let granted = self.inner.grant_directly(request).await;
        self.inner.discard_if_restored();
        let refused = |error| IssueError::from_grant(&scope_id, wanted.count(), series.end(), error);
        granted.map(|grant| grant.range.into()).map_err(refused)
    }

    /// Records the `left` positions before an adopted number as lost, if there is room for a run after it.
    async fn lose_before_adopted(&self, call: Call<'_>, left: u64) -> Result<bool, IssueError> {
        let (series, store, count) = (call.series, &self.inner.store, call.wanted.count());
        if left == 0 || left >= count {
            return Ok(false);
        }
        let scope_id = call.scope_id();
        let failed = IssueError::from_store(&scope_id);
        let next = store.cursor(scope_id.clone()).await.map_err(&failed)?.map_or(0, |cursor| cursor.next);
        let next = next.max(series.start().value());
        if series.end().saturating_sub(next) <= left + count {
            return Ok(false);
        }
        let granted = store.grant(series.grant_request(scope_id.clone(), left, GrantPurpose::Hold)).await;
        let Ok(Grant { range, .. }) = granted else { return Ok(false) };
        // No cursor has this version, so the cursor stays and the positions are recorded as lost.
        let release = ReleaseRequest { scope_id: scope_id.clone(), range, version: 0, lost: Vec::new() };
        store.release(release).await.map_err(failed)?;
        Ok(true)
    }
}

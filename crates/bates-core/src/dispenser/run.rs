//! Runs: positions that follow each other. `INCRBY` answers with the last one, and the caller owns all of them.
//!
//! What could go wrong, and why it does not: a number twice, if a run reached over positions of another caller. Memory
//! gives a run from one range alone, and the store grants one range. A number that falls: in an ordered series what lies
//! before a run is given up, and the store records it as lost, before the run is taken.

use super::cell::Cell;
use super::shards::At;
use super::{Dispenser, Inner, want};
use crate::error::IssueError;
use crate::ledger::{Grant, Purpose, Tail};
use crate::range::Taken;
use crate::scope::{Place, ScopeKey};
use crate::series::Series;
use crate::store::{Store, StoreError};

/// Adopted numbers that one call skips before it is refused. Each costs three commits.
const CUTS_MAX: usize = 64;

impl<S: Store> Dispenser<S> {
    /// The next `count` positions of a scope, without a hole: all of them, or an error.
    ///
    /// Panics on a count of 0, which no answer could be.
    pub async fn take_run(&self, series: &Series, scope: &ScopeKey, count: u64) -> Result<Taken, IssueError> {
        if count <= 1 {
            return self.take(series, scope, count).await;
        }
        self.check_process(series, scope)?;
        if let Some(purpose) = self.direct(series) {
            return self.issue_run(series, scope, count, purpose).await;
        }
        if let Some(answer) = self.take_held_run(series, scope, count, false).await {
            return answer;
        }
        match self.issue(series, scope, count, Purpose::HandOut).await {
            // The space may be at its end, or an adopted number may follow too soon: a lease reaches over those.
            Err(exhausted @ (IssueError::Exhausted { .. } | IssueError::HeldElsewhere { .. })) => {
                self.take_held_run(series, scope, count, true).await.unwrap_or(Err(exhausted))
            }
            answer => answer,
        }
    }

    /// The same if the range in use holds them and no caller waits, without waiting and without building a key: for the
    /// hot path. `None` means: ask [`Dispenser::take_run`].
    pub fn try_take_run(&self, series: &Series, scope: &str, count: u64) -> Option<Taken> {
        if count == 0 || !self.may_hold(series) {
            return None;
        }
        let (taken, fetch) =
            self.inner.shards.look(At { series, scope }, |cell| cell.try_take_run(count))??;
        self.inner.start_refill(fetch);
        Some(taken)
    }

    /// A run out of memory, or out of the next lease. `None` if the store should be asked for the run alone.
    async fn take_held_run(
        &self,
        series: &Series,
        scope: &ScopeKey,
        count: u64,
        is_patient: bool,
    ) -> Option<Result<Taken, IssueError>> {
        let at = At { series, scope: scope.as_str() };
        let take = |cell: &mut Cell| cell.take_run(count, is_patient);
        let Some(seen) = self.inner.shards.look_or_make(at, || self.may_hold(series), take) else {
            return Some(match self.direct(series) {
                Some(purpose) => self.issue_run(series, scope, count, purpose).await,
                None => Err(self.refusal(series, scope)),
            });
        };
        Some(self.answer(at, seen?).await)
    }

    /// A run that the store grants for this very call. Where an adopted number follows too soon, what lies before it is
    /// given up; in a gapless series the call is refused instead.
    async fn issue_run(
        &self,
        series: &Series,
        scope: &ScopeKey,
        count: u64,
        purpose: Purpose,
    ) -> Result<Taken, IssueError> {
        let mut answer = self.issue(series, scope, count, purpose).await;
        for _ in 0..CUTS_MAX {
            let left = match &answer {
                Err(IssueError::Exhausted { left, .. } | IssueError::HeldElsewhere { left, .. }) => *left,
                _ => break,
            };
            if purpose != Purpose::HandOut || !self.give_up_cut(series, scope, (left, count)).await? {
                break;
            }
            answer = self.issue(series, scope, count, purpose).await;
        }
        answer
    }

    /// Gives up the `left` positions before an adopted number, if there is room for a run behind it.
    async fn give_up_cut(
        &self,
        series: &Series,
        scope: &ScopeKey,
        (left, count): (u64, u64),
    ) -> Result<bool, IssueError> {
        let place = Place { series: series.name().clone(), scope: scope.clone() };
        let failed = |error| IssueError::Store { place: place.clone(), error };
        let store = &self.inner.store;
        let next = store.cursor(place.clone()).await.map_err(failed)?.map_or(0, |cursor| cursor.next);
        let next = next.max(series.start().value());
        if left == 0 || left >= count || series.end().saturating_sub(next) <= left + count {
            return Ok(false);
        }
        let granted = store.grant(want(place.clone(), series, left, Purpose::Lease)).await;
        let Ok(Grant { lease, .. }) = granted else { return Ok(false) };
        // No cursor has this version, so it stays where it is and the positions are written down as lost.
        let tail = Tail { place: place.clone(), lease, version: 0, lost: Vec::new() };
        store.surrender(tail).await.map_err(failed)?;
        Ok(true)
    }
}

impl<S: Store> Inner<S> {
    /// Gives back what a cell gave up for a run, before the run is fetched.
    pub(super) async fn give_back_first(&self, tail: Option<Tail>) -> Result<(), StoreError> {
        let Some(tail) = tail else { return Ok(()) };
        let era = self.era.load(std::sync::atomic::Ordering::Acquire);
        self.surrender(tail, era).await.map(drop)
    }
}

//! Positions that the store grants for one call, without a lease in between: where what is held in memory could not
//! keep the promise of the series. Must never hold a position.

use tokio::sync::SemaphorePermit;

use super::burned::DirectGrant;
use super::{Dispenser, want};
use crate::error::IssueError;
use crate::ledger::Purpose;
use crate::range::Taken;
use crate::scope::{Place, ScopeKey};
use crate::series::{Promise, Series};
use crate::store::Store;

/// How many calls that are granted one by one may be on their way to the store together. They share commits, so
/// more would only wait in memory.
pub(super) const CALLS_MAX: usize = 10_000;

impl<S: Store> Dispenser<S> {
    /// How a call is granted by the store itself, where no lease in memory could keep the promise: the order of
    /// calls to several nodes is that of commits.
    pub(crate) fn direct(&self, series: &Series) -> Option<Purpose> {
        match series.promise() {
            Promise::Gapless => Some(Purpose::Issue),
            Promise::Ordered if self.inner.store.is_shared() || series.is_out_of_memory() => {
                Some(Purpose::HandOut)
            }
            Promise::Ordered | Promise::Unique => None,
        }
    }

    /// From now on the calls of a series are granted by the store itself. When it answers, nothing of it is held.
    pub(crate) async fn leave_memory(&self, series: &Series) {
        // In a fork the store refuses the call that comes next.
        if self.is_forked() {
            return;
        }
        let close = async {
            self.close_all(Some(series.name())).await;
        };
        series.memory().leave(close).await;
    }

    /// One of the calls that may be on their way to the store together.
    pub(crate) fn permit(&self, place: &Place) -> Result<SemaphorePermit<'_>, IssueError> {
        let busy = |_| IssueError::Busy { place: place.clone(), waiting: CALLS_MAX };
        self.inner.direct_calls.try_acquire().map_err(busy)
    }

    /// How many of them are on their way.
    pub(crate) fn calls_under_way(&self) -> usize {
        CALLS_MAX - self.inner.direct_calls.available_permits()
    }

    /// Why a call is not begun.
    pub(crate) fn refusal(&self, series: &Series, scope: &ScopeKey) -> IssueError {
        if self.is_closing() {
            return IssueError::Stopping;
        }
        IssueError::Retired { place: Place { series: series.name().clone(), scope: scope.clone() } }
    }

    /// One durable grant for this very call; calls that wait together share a commit.
    pub(super) async fn issue(
        &self,
        series: &Series,
        scope: &ScopeKey,
        count: u64,
        purpose: Purpose,
    ) -> Result<Taken, IssueError> {
        let place = Place { series: series.name().clone(), scope: scope.clone() };
        if self.is_closing() || series.is_retired() {
            return Err(self.refusal(series, scope));
        }
        let _permit = self.permit(&place)?;
        let want = want(place.clone(), series, count, purpose);
        let granted = DirectGrant::new(&self.inner, want).await;
        self.inner.keep_up();
        match granted {
            Ok(grant) => Ok(Taken { first: grant.lease, rest: Vec::new() }),
            Err(error) => Err(IssueError::of_grant(&place, count, series.end(), error)),
        }
    }
}

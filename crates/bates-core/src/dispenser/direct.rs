//! Positions that the store grants for one call, without a lease in between: where what is held in memory could not
//! keep the promise of the series. Must never hold a position.

use super::{Dispenser, want};
use crate::error::IssueError;
use crate::grant::Purpose;
use crate::lease::Taken;
use crate::place::{Place, ScopeKey};
use crate::promise::Promise;
use crate::series::Series;
use crate::store::Store;

/// How many calls that are granted one by one may be on their way to the store together. They share commits, so
/// more would only wait in memory.
pub(super) const CALLS_MAX: usize = 10_000;

impl<S: Store> Dispenser<S> {
    /// How a call is granted by the store itself, where no lease in memory could keep the promise: the order of
    /// calls to several nodes is that of commits.
    pub(super) fn direct(&self, promise: Promise) -> Option<Purpose> {
        match promise {
            Promise::Gapless => Some(Purpose::Issue),
            Promise::Ordered if self.inner.store.is_shared() => Some(Purpose::HandOut),
            Promise::Ordered | Promise::Unique => None,
        }
    }

    /// Why a call is not begun.
    pub(super) fn refusal(&self, series: &Series, scope: &ScopeKey) -> IssueError {
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
        let Ok(_permit) = self.inner.direct_calls.try_acquire() else {
            return Err(IssueError::Busy { place, waiting: CALLS_MAX });
        };
        let granted = self.inner.store.grant(want(place.clone(), series, count, purpose)).await;
        self.inner.keep_up();
        match granted {
            Ok(grant) => Ok(Taken { first: grant.lease, rest: Vec::new() }),
            Err(error) => Err(IssueError::of_grant(&place, count, series.end(), error)),
        }
    }
}

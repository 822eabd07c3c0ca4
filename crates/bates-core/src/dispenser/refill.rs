//! Refills: positions fetched from the store for one cell, by a task of the runtime in which the dispenser was made.
//!
//! Invariant: a cell whose refill began is told that it ended, also if the task is dropped.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::cell::{Cell, Fetch};
use super::refills::Counted;
use super::shards::At;
use super::{Inner, want};
use crate::ledger::{Grant, GrantError, Purpose, Want};
use crate::scope::Place;
use crate::series::Series;
use crate::store::{Store, StoreError};

impl<S: Store> Inner<S> {
    /// Runs work in the background. Invariant: it counts until it has let go of the store, which a dispenser that closes
    /// waits for.
    pub(super) fn spawn<F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F,
    ) -> oneshot::Receiver<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (work, counted) = (work(self.clone()), self.refills.begin());
        let _inside = self.tokio.enter();
        self.store.runtime().spawn_for(async move {
            let output = work.await;
            drop(counted);
            output
        })
    }

    /// Fetches positions in the background, and goes on as long as the cell asks for more.
    #[inline]
    pub(super) fn start_refill(self: &Arc<Self>, fetch: Option<Fetch>) {
        if let Some(fetch) = fetch {
            self.spawn_refill(fetch);
        }
    }

    #[cold]
    fn spawn_refill(self: &Arc<Self>, fetch: Fetch) {
        let inner = self.clone();
        let running = Refill {
            at: Some((fetch.place.clone(), fetch.series.clone())),
            inner,
            _counted: self.refills.begin(),
        };
        let _inside = self.tokio.enter();
        self.store.runtime().spawn(Box::pin(running.run(fetch)));
    }

    /// What the store grants for a refill.
    async fn fetch(&self, fetch: Fetch) -> Result<Grant, GrantError> {
        let Fetch { place, series, count, least, held_from, give_back } = fetch;
        let held_from = self.given_up.held_from(&place, held_from);
        let want = Want { least, held_from, ..want(place, &series, count, Purpose::Lease) };
        self.give_back_first(give_back).await?;
        self.store.grant(want).await
    }

    /// Tells a cell that its refill ended. Answers what to fetch next, if anything.
    fn refilled(
        &self,
        (place, series): &(Place, Series),
        outcome: Result<Grant, GrantError>,
    ) -> Option<Fetch> {
        let at = At { series, scope: place.scope.as_str() };
        // Invariant: a cell with a refill under way is not removed, so it is there. One that was refused its first
        // positions leaves no trace: a careless client fills no memory.
        let refilled = |cell: &mut Cell| {
            if let (true, Ok(grant)) = (cell.is_refill_discarded(), &outcome) {
                self.given_up.add(cell.place(), [grant.lease]);
            }
            cell.refilled(outcome)
        };
        let next = self.shards.look_and_tidy(at, refilled).flatten();
        self.refills.arrived();
        next
    }
}

/// A refill that is under way.
struct Refill<S: Store> {
    inner: Arc<Inner<S>>,
    /// Which cell waits for it; `None` once it was told.
    at: Option<(Place, Series)>,
    // Invariant: last, so that it counts until it has let go of the store.
    _counted: Counted,
}

impl<S: Store> Refill<S> {
    async fn run(mut self, fetch: Fetch) {
        let mut next = Some(fetch);
        while let Some(fetch) = next {
            let outcome = self.inner.fetch(fetch).await;
            self.inner.keep_up();
            let Some(at) = self.at.take() else { return };
            next = self.inner.refilled(&at, outcome);
            self.at = next.is_some().then_some(at);
        }
    }
}

/// A refill whose task was dropped with its runtime fails, so that no caller waits for it for ever. What it was granted is
/// uncertain, as after a crash: the store counts it as held.
impl<S: Store> Drop for Refill<S> {
    fn drop(&mut self) {
        if let Some(at) = self.at.take() {
            self.inner.refilled(&at, Err(StoreError::RuntimeEnded.into()));
        }
    }
}

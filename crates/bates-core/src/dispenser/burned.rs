//! Positions taken that reached no caller: it stopped waiting, or a write that must come first failed. They are never
//! handed out again, and the store records them as gaps.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::cell::Answer;
use super::{Dispenser, Inner};
use crate::ledger::{Grant, GrantError, Want};
use crate::range::Lease;
use crate::scope::Place;
use crate::store::{Store, StoreError};

/// Burned positions that the store has not recorded yet.
#[derive(Default)]
pub(super) struct Burned(Mutex<Vec<(Place, Lease)>>);

impl<S: Store> Dispenser<S> {
    /// Has the store record, in the background, that positions reached no caller. Failures are retried later.
    pub(crate) fn burn(&self, place: &Place, ranges: impl IntoIterator<Item = Lease>) {
        if !self.is_forked() {
            self.inner.burn(place, ranges);
        }
    }
}

impl<S: Store> Inner<S> {
    fn burn(self: &Arc<Self>, place: &Place, ranges: impl IntoIterator<Item = Lease>) {
        let ranges = ranges.into_iter().map(|range| (place.clone(), range));
        self.burned.0.lock().extend(ranges);
        // What fails stays in the list.
        self.spawn(|inner| async move { drop(inner.report_burned().await) });
    }

    pub(super) async fn report_burned(&self) -> Result<(), StoreError> {
        let mut reporting =
            Reporting { burned: &self.burned, ranges: std::mem::take(&mut *self.burned.0.lock()) };
        if !reporting.ranges.is_empty() {
            self.store.burn(reporting.ranges.clone()).await?;
            reporting.ranges.clear();
        }
        Ok(())
    }
}

/// Ranges on their way to the store. They return to the list if the report fails or is cancelled.
struct Reporting<'b> {
    burned: &'b Burned,
    ranges: Vec<(Place, Lease)>,
}

impl Drop for Reporting<'_> {
    fn drop(&mut self) {
        if !self.ranges.is_empty() {
            self.burned.0.lock().append(&mut self.ranges);
        }
    }
}

/// Waits for positions of a cell. Positions already sent are burned if the caller stops waiting.
pub(super) struct Awaited<'d, S: Store> {
    pub(super) inner: &'d Arc<Inner<S>>,
    pub(super) place: Place,
    pub(super) receiver: oneshot::Receiver<Answer>,
}

impl<S: Store> Drop for Awaited<'_, S> {
    fn drop(&mut self) {
        if self.inner.process.is_forked() {
            return;
        }
        self.receiver.close();
        if let Ok(Ok(taken)) = self.receiver.try_recv() {
            self.inner.burn(&self.place, taken.leases());
        }
    }
}

impl<S: Store> Inner<S> {
    /// A grant for one call. If the caller stops waiting, a task finishes the grant and burns it.
    pub(super) async fn grant_directly(self: &Arc<Self>, want: Want) -> Result<Grant, GrantError> {
        let (place, inner) = (want.place.clone(), self.clone());
        let granting = Box::pin(async move { inner.store.grant(want).await });
        let mut direct = DirectGrant { inner: self, place, granting: Some(granting) };
        let granted = direct.granting.as_mut().expect("it is there until it has ended").await;
        direct.granting = None;
        granted
    }
}

struct DirectGrant<'d, S: Store> {
    inner: &'d Arc<Inner<S>>,
    place: Place,
    granting: Option<BoxFuture<'static, Result<Grant, GrantError>>>,
}

impl<S: Store> Drop for DirectGrant<'_, S> {
    fn drop(&mut self) {
        let Some(granting) = self.granting.take() else { return };
        if self.inner.process.is_forked() {
            return;
        }
        let place = self.place.clone();
        self.inner.spawn(|inner| async move {
            if let Ok(grant) = granting.await {
                inner.burn(&place, [grant.lease]);
            }
        });
    }
}

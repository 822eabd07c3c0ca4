//! Positions taken that reached no caller: it stopped waiting, or a write that must come first failed. They are never
//! handed out again, and the store records them as gaps.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::TakeResult;
use super::{Dispenser, Inner};
use crate::ledger::{Grant, GrantError, GrantRequest};
use crate::range::PositionRange;
use crate::scope::ScopeId;
use crate::store::{Store, StoreResult};

/// Burned positions that the store has not recorded yet.
#[derive(Default)]
pub(super) struct BurnedPositions(Mutex<Vec<(ScopeId, PositionRange)>>);

impl<S: Store> Dispenser<S> {
    /// Has the store record, in the background, that positions reached no caller. Failures are retried later.
    pub(crate) fn burn(&self, scope_id: &ScopeId, ranges: impl IntoIterator<Item = PositionRange>) {
        if !self.is_forked() {
            self.inner.burn(scope_id, ranges);
        }
    }
}

impl<S: Store> Inner<S> {
    fn burn(self: &Arc<Self>, scope_id: &ScopeId, ranges: impl IntoIterator<Item = PositionRange>) {
        let ranges = ranges.into_iter().map(|range| (scope_id.clone(), range));
        self.burned.0.lock().extend(ranges);
        // After a failure, the ranges stay in the list.
        self.spawn(|inner| async move { drop(inner.report_burned().await) });
    }

    pub(super) async fn report_burned(&self) -> StoreResult<()> {
        let ranges = std::mem::take(&mut *self.burned.0.lock());
        let mut report = BurnReport { burned: &self.burned, ranges };
        if !report.ranges.is_empty() {
            self.store.burn(report.ranges.clone()).await?;
            report.ranges.clear();
        }
        Ok(())
    }
}

/// Ranges being reported to the store. They return to the list if the report fails or is cancelled.
struct BurnReport<'b> {
    burned: &'b BurnedPositions,
    ranges: Vec<(ScopeId, PositionRange)>,
}

impl Drop for BurnReport<'_> {
    fn drop(&mut self) {
        if !self.ranges.is_empty() {
            self.burned.0.lock().append(&mut self.ranges);
        }
    }
}

/// Waits for positions of a cell. Positions already sent are burned if the caller stops waiting.
pub(super) struct PendingTake<'d, S: Store> {
    pub(super) inner: &'d Arc<Inner<S>>,
    pub(super) scope_id: ScopeId,
    pub(super) receiver: oneshot::Receiver<TakeResult>,
}

impl<S: Store> Drop for PendingTake<'_, S> {
    fn drop(&mut self) {
        if self.inner.process.is_forked() {
            return;
        }
        self.receiver.close();
        if let Ok(Ok(taken)) = self.receiver.try_recv() {
            self.inner.burn(&self.scope_id, taken.ranges());
        }
    }
}

impl<S: Store> Inner<S> {
    /// A grant for one call. If the caller stops waiting, a task finishes the grant and burns it.
    pub(super) async fn grant_directly(self: &Arc<Self>, request: GrantRequest) -> Result<Grant, GrantError> {
        let (scope_id, inner) = (request.scope_id.clone(), self.clone());
        let granting = Box::pin(async move { inner.store.grant(request).await });
        let mut direct = DirectGrant { inner: self, scope_id, granting: Some(granting) };
        let granted = direct.granting.as_mut().expect("set above").await;
        direct.granting = None;
        granted
    }
}

struct DirectGrant<'d, S: Store> {
    inner: &'d Arc<Inner<S>>,
    scope_id: ScopeId,
    granting: Option<BoxFuture<'static, Result<Grant, GrantError>>>,
}

impl<S: Store> Drop for DirectGrant<'_, S> {
    fn drop(&mut self) {
        let Some(granting) = self.granting.take() else { return };
        if self.inner.process.is_forked() {
            return;
        }
        let scope_id = self.scope_id.clone();
        self.inner.spawn(|inner| async move {
            if let Ok(grant) = granting.await {
                inner.burn(&scope_id, [grant.range]);
            }
        });
    }
}

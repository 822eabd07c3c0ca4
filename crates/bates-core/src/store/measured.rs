//! A store whose calls for numbers are measured: how often it grants or fails, and how long it takes.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Store, StoreError, StoreResult};
use crate::ProcessGuard;
use crate::counts::{Counts, Latency};
use crate::document::{AssignError, AssignRequest, Assignment};
use crate::ledger::{Grant, GrantError, GrantRequest, ReleaseOutcome, ReleaseRequest};
use crate::range::PositionRange;
use crate::runtime::Runtime;
use crate::scope::ScopeId;
use crate::series::{Series, SeriesName};

/// All calls that are not measured go to the store itself.
pub(crate) struct MeasuredStore<S> {
    store: Arc<S>,
    runtime: Arc<dyn Runtime>,
    latency: Latency,
    counts: RwLock<HashMap<SeriesName, Arc<Counts>>>,
    process: ProcessGuard,
}

impl<S> Deref for MeasuredStore<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.store
    }
}

impl<S> MeasuredStore<S> {
    pub(crate) fn new(store: Arc<S>, runtime: Arc<dyn Runtime>) -> Self {
        let (latency, counts) = (Latency::default(), RwLock::default());
        Self { store, runtime, latency, counts, process: ProcessGuard::current() }
    }

    /// A series keeps its counts when it is retired and created again.
    pub(crate) fn counts(&self, series: &SeriesName) -> Arc<Counts> {
        self.counts.write().entry(series.clone()).or_default().clone()
    }

    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    pub(crate) fn latency(&self) -> &Latency {
        &self.latency
    }

    async fn timed<T, E: From<StoreError>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let started = self.runtime.elapsed();
        // Invariant: a call that is under way when the process is forked answers in the parent only.
        let answer = self.process.unless_forked(call).await.ok_or(StoreError::Forked)?;
        self.latency.add(self.runtime.elapsed().saturating_sub(started));
        answer
    }
}

impl<S: Store> MeasuredStore<S> {
    pub(crate) async fn grant(&self, request: GrantRequest) -> Result<Grant, GrantError> {
        let (scope_id, end) = (request.scope_id.clone(), request.end);
        let granted = self.timed(self.store.grant(request)).await;
        self.note_grant(&scope_id, end, &granted);
        granted
    }

    /// `cells` are the scopes of the requests.
    pub(crate) async fn grant_all(
        &self,
        requests: Vec<GrantRequest>,
        cells: &[(Series, ScopeId)],
    ) -> Vec<Result<Grant, GrantError>> {
        let granted = self.timed(async { Ok(self.store.grant_all(requests).await) }).await;
        let granted = granted.unwrap_or_else(|error: GrantError| vec![Err(error); cells.len()]);
        for ((series, scope_id), granted) in cells.iter().zip(&granted) {
            self.note_grant(scope_id, series.end(), granted);
        }
        granted
    }

    fn note_grant(&self, ScopeId { series, scope }: &ScopeId, end: u64, granted: &Result<Grant, GrantError>) {
        let all_counts = self.counts.read();
        let Some(counts) = all_counts.get(series) else { return };
        counts.add_refill(granted.is_ok());
        match granted {
            Ok(grant) => counts.usage.raise(scope.parts().1, grant.range.to()),
            Err(GrantError::Exhausted { left, .. }) => {
                counts.usage.raise(scope.parts().1, end.saturating_sub(*left));
            }
            Err(_) => {}
        }
    }

    pub(crate) async fn release(&self, release: ReleaseRequest) -> StoreResult<ReleaseOutcome> {
        let (scope_id, range) = (release.scope_id.clone(), release.range);
        let outcome = self.store.release(release).await;
        self.note_release(&scope_id, range, &outcome);
        outcome
    }

    pub(crate) async fn release_all(
        &self,
        releases: Vec<ReleaseRequest>,
    ) -> Vec<StoreResult<ReleaseOutcome>> {
        let ranges: Vec<_> =
            releases.iter().map(|release| (release.scope_id.clone(), release.range)).collect();
        let outcomes = self.store.release_all(releases).await;
        for ((scope_id, range), outcome) in ranges.iter().zip(&outcomes) {
            self.note_release(scope_id, *range, outcome);
        }
        outcomes
    }

    fn note_release(
        &self,
        ScopeId { series, scope }: &ScopeId,
        range: PositionRange,
        outcome: &StoreResult<ReleaseOutcome>,
    ) {
        if *outcome == Ok(ReleaseOutcome::Returned)
            && let Some(counts) = self.counts.read().get(series)
        {
            counts.usage.lower(scope.parts().1, range.to(), range.from());
        }
    }

    pub(crate) async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError> {
        self.timed(self.store.assign(assign)).await
    }
}

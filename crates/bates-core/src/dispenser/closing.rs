//! Takes held positions out of memory and releases them to the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::cell::Cell;
use super::{Dispenser, Inner};
use crate::ledger::{ReleaseOutcome, ReleaseRequest};
use crate::series::SeriesName;
use crate::store::Store;

/// Max scopes that are released together.
const RELEASES_MAX: usize = 4_096;

/// Calls to the store at a time, so that it is never idle.
const CALLS_MAX: usize = 2;

/// The outcome of releasing held positions when a dispenser closes or scopes are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseReport {
    pub scopes: u64,
    /// Positions returned to their cursors.
    pub returned: u64,
    pub gaps: u64,
    /// Positions for which no time was left: they are skipped, as after a crash.
    pub skipped: u64,
}

impl ReleaseReport {
    fn add(&mut self, other: Self) {
        self.scopes += other.scopes;
        self.returned += other.returned;
        self.gaps += other.gaps;
        self.skipped += other.skipped;
    }
}

impl<S: Store> Dispenser<S> {
    /// Seals the cells of a series, or all, until none is left. The caller must prevent new ones. No release begins after the
    /// `deadline`, in elapsed time of the runtime.
    pub(super) async fn close_all(
        &self,
        of: Option<&SeriesName>,
        deadline: Option<Duration>,
    ) -> ReleaseReport {
        let mut closed = ReleaseReport::default();
        loop {
            let ended = self.inner.tasks.ended();
            let sealed = self.inner.seal(of, false);
            if !sealed.is_empty() {
                closed.add(self.inner.release_all(sealed, deadline).await);
                // `ended` was notified by the release, which says nothing about refills.
                continue;
            }
            if !self.inner.shards.any(|cell| of.is_none_or(|series| cell.series.name() == series)) {
                return closed;
            }
            // A cell that cannot be sealed has a refill under way: wait for its end.
            if self.inner.tasks.are_under_way() {
                ended.await;
            } else {
                // Its task is about to start.
                tokio::task::yield_now().await;
            }
        }
    }
}

impl<S: Store> Inner<S> {
    pub(super) fn seal(&self, of: Option<&SeriesName>, only_idle: bool) -> Vec<SealedCell> {
        let mut sealed = Vec::new();
        let is_of = |cell: &Cell| of.is_none_or(|series| cell.series.name() == series);
        self.shards.sweep(|cell| {
            let ended = if is_of(cell) { cell.seal(only_idle) } else { None };
            let is_sealed = ended.is_some();
            sealed.extend(ended);
            is_sealed
        });
        sealed
    }

    /// Releases in a task: the ranges are in no cell any more, and must not be lost if the caller stops waiting.
    pub(super) async fn release_all(
        self: &Arc<Self>,
        sealed: Vec<SealedCell>,
        deadline: Option<Duration>,
    ) -> ReleaseReport {
        let scopes = sealed.len() as u64;
        let release = |inner: Arc<Self>| async move { inner.release_in_order(sealed, deadline).await };
        self.spawn(release).await.unwrap_or_else(|_| {
            self.has_unknown_releases.store(true, Ordering::Release);
            ReleaseReport { scopes, ..ReleaseReport::default() }
        })
    }

    async fn release_in_order(
        self: &Arc<Self>,
        sealed: Vec<SealedCell>,
        deadline: Option<Duration>,
    ) -> ReleaseReport {
        // A release tells the store that all positions before it were handed out: report the others first.
        if !sealed.is_empty() && Box::pin(self.report_all()).await.is_err() {
            self.has_unknown_releases.store(true, Ordering::Release);
        }
        let mut closed = ReleaseReport { scopes: sealed.len() as u64, ..ReleaseReport::default() };
        closed.gaps = sealed.iter().map(|sealed| sealed.lost_count).sum();
        let era = self.era.load(Ordering::Acquire);
        let calls = chunks_in_order(sealed).map(|releases| {
            let inner = self.clone();
            async move { inner.release_chunk(releases, era, deadline).await }
        });
        let mut released = stream::iter(calls).buffer_unordered(CALLS_MAX);
        while let Some(released) = released.next().await {
            closed.add(released);
        }
        closed
    }

    async fn release_chunk(
        &self,
        releases: Vec<ReleaseRequest>,
        era: u64,
        deadline: Option<Duration>,
    ) -> ReleaseReport {
        let mut report = ReleaseReport::default();
        if deadline.is_some_and(|deadline| self.store.runtime().elapsed() >= deadline) {
            // The store believes that this process still holds them.
            self.has_unknown_releases.store(true, Ordering::Release);
            report.skipped = releases.iter().map(|release| release.range.count()).sum();
            return report;
        }
        let counts: Vec<u64> = releases.iter().map(|release| release.range.count()).collect();
        let outcomes = self.release_many(releases, era).await;
        for (count, outcome) in counts.into_iter().zip(outcomes) {
            match outcome {
                Ok(ReleaseOutcome::Returned) => report.returned += count,
                Ok(ReleaseOutcome::Gap) => report.gaps += count,
                // An unknown outcome is a gap: a range is released once, and never again.
                Err(_) => {
                    self.has_unknown_releases.store(true, Ordering::Release);
                    report.gaps += count;
                }
            }
        }
        report
    }
}

/// The releases of cells, in the order of the store: neighbours share a page, so few pages are written.
fn chunks_in_order(sealed: Vec<SealedCell>) -> impl Iterator<Item = Vec<ReleaseRequest>> {
    let mut by_series: HashMap<SeriesName, Vec<ReleaseRequest>> = HashMap::new();
    for release in sealed.into_iter().filter_map(|sealed| sealed.release) {
        by_series.entry(release.scope_id.series.clone()).or_default().push(release);
    }
    by_series.into_values().flat_map(|mut releases| {
        let common = common_prefix(releases.iter().map(|release| release.scope_id.scope.as_str().as_bytes()));
        // Some bytes are enough: a million texts would be compared twenty million times, each with a miss of the cache.
        releases.sort_by_cached_key(|release| {
            let text = &release.scope_id.scope.as_str().as_bytes()[common..];
            let mut bytes = [0; 16];
            let count = text.len().min(bytes.len());
            bytes[..count].copy_from_slice(&text[..count]);
            u128::from_be_bytes(bytes)
        });
        let mut releases = releases.into_iter();
        std::iter::from_fn(move || {
            let chunk: Vec<ReleaseRequest> = releases.by_ref().take(RELEASES_MAX).collect();
            (!chunk.is_empty()).then_some(chunk)
        })
    })
}

/// The number of bytes with which all texts begin.
fn common_prefix<'t>(mut texts: impl Iterator<Item = &'t [u8]>) -> usize {
    let first = texts.next().unwrap_or_default();
    texts.fold(first.len(), |common, text| {
        first[..common].iter().zip(text).take_while(|(one, other)| one == other).count()
    })
}

pub(super) struct SealedCell {
    pub(super) release: Option<ReleaseRequest>,
    /// Positions that cannot be released.
    pub(super) lost_count: u64,
}

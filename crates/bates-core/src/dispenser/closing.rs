//! Takes held positions out of memory and releases them to the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::cell::Cell;
use super::{Dispenser, Inner};
use crate::ledger::{ReleaseOutcome, ReleaseRequest};
use crate::series::SeriesName;
use crate::store::Store;

const RELEASES_MAX: usize = 1_024;

/// The outcome of releasing held positions when a dispenser closes or scopes are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseReport {
    pub scopes: u64,
    /// Positions returned to their cursors.
    pub returned: u64,
    pub gaps: u64,
}

impl<S: Store> Dispenser<S> {
    /// Seals the cells of a series, or all, until none is left. The caller must prevent new ones.
    pub(super) async fn close_all(&self, of: Option<&SeriesName>) -> ReleaseReport {
        let mut closed = ReleaseReport::default();
        loop {
            let ended = self.inner.tasks.ended();
            let sealed = self.inner.seal(of, false);
            if !sealed.is_empty() {
                let ReleaseReport { scopes, returned, gaps } = self.inner.release_all(sealed).await;
                closed.scopes += scopes;
                closed.returned += returned;
                closed.gaps += gaps;
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
    pub(super) async fn release_all(self: &Arc<Self>, sealed: Vec<SealedCell>) -> ReleaseReport {
        let scopes = sealed.len() as u64;
        let released = self.spawn(|inner| async move { inner.release_concurrently(sealed).await }).await;
        released.unwrap_or_else(|_| {
            self.has_unknown_releases.store(true, Ordering::Release);
            ReleaseReport { scopes, ..ReleaseReport::default() }
        })
    }

    async fn release_concurrently(self: &Arc<Self>, sealed: Vec<SealedCell>) -> ReleaseReport {
        // A release tells the store that all positions before it were handed out: report the others first.
        if !sealed.is_empty() && Box::pin(self.report_all()).await.is_err() {
            self.has_unknown_releases.store(true, Ordering::Release);
        }
        let mut closed = ReleaseReport { scopes: sealed.len() as u64, ..ReleaseReport::default() };
        closed.gaps = sealed.iter().map(|sealed| sealed.lost_count).sum();
        let era = self.era.load(Ordering::Acquire);
        let releases = sealed.into_iter().filter_map(|sealed| sealed.release).map(|release| {
            let inner = self.clone();
            async move { (release.range.count(), inner.release(release, era).await) }
        });
        let mut released = stream::iter(releases).buffer_unordered(RELEASES_MAX);
        while let Some((count, outcome)) = released.next().await {
            match outcome {
                Ok(ReleaseOutcome::Returned) => closed.returned += count,
                Ok(ReleaseOutcome::Gap) => closed.gaps += count,
                // An unknown outcome is a gap: a range is released once, and never again.
                Err(_) => {
                    self.has_unknown_releases.store(true, Ordering::Release);
                    closed.gaps += count;
                }
            }
        }
        closed
    }
}

pub(super) struct SealedCell {
    pub(super) release: Option<ReleaseRequest>,
    /// Positions that cannot be released.
    pub(super) lost_count: u64,
}

//! Ranges that this process gives up before they are used: recalled, or granted before the store was restored.
//!
//! Invariant: ranges given up are not handed out afterwards, and are reported until the store has recorded them.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::cell::Cell;
use super::{Dispenser, Inner};
use crate::ledger::{ReleaseOutcome, ReleaseRequest};
use crate::range::PositionRange;
use crate::recall::Recall;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::SeriesName;
use crate::store::{Store, StoreResult};

/// Given up and not reported yet, by series.
#[derive(Default)]
pub(super) struct GivenUpRanges(Mutex<BTreeMap<SeriesName, Vec<(ScopeKey, PositionRange)>>>);

impl GivenUpRanges {
    pub(super) fn add(&self, scope_id: ScopeId, ranges: impl IntoIterator<Item = PositionRange>) {
        let mut ranges = ranges.into_iter().peekable();
        if ranges.peek().is_some() {
            let mut all = self.0.lock();
            let of_series = all.entry(scope_id.series).or_default();
            of_series.extend(ranges.map(|range| (scope_id.scope.clone(), range)));
        }
    }

    /// The first position of a scope that this process reports as held: the store assumes that everything below was
    /// handed out, which must not include ranges that were given up and not reported.
    pub(super) fn held_from(&self, scope_id: &ScopeId, held_from: Option<u64>) -> Option<u64> {
        let all = self.0.lock();
        let of_series = all.get(&scope_id.series).into_iter().flatten();
        let of_scope = of_series.filter(|(scope, _)| *scope == scope_id.scope);
        of_scope.map(|(_, range)| range.from()).chain(held_from).min()
    }

    fn of(&self, series: &SeriesName) -> Vec<(ScopeKey, PositionRange)> {
        self.0.lock().get(series).cloned().unwrap_or_default()
    }

    /// Removes reported ranges. Invariant: no others: more may have been given up, or reported twice, meanwhile.
    fn remove(&self, series: &SeriesName, reported: &[(ScopeKey, PositionRange)]) {
        let reported: HashSet<&(ScopeKey, PositionRange)> = reported.iter().collect();
        let mut all = self.0.lock();
        if let Some(of_series) = all.get_mut(series) {
            of_series.retain(|given_up| !reported.contains(given_up));
            if of_series.is_empty() {
                all.remove(series);
            }
        }
    }
}

impl<S: Store> Dispenser<S> {
    /// Answers the recalls of the store, and reports other ranges that were given up. The next call retries what failed.
    pub(crate) async fn answer_recalls(&self) -> StoreResult<()> {
        let inner = &self.inner;
        for Recall { series, epoch } in inner.store.recalls().await? {
            inner.discard(|cell| cell.series.name() == &series);
            inner.discarded_refills_ended(&series).await;
            inner.report(&series, Some(epoch)).await?;
            inner.recalls_answered.fetch_add(1, Ordering::AcqRel);
        }
        inner.report_all().await
    }

    /// At a clean stop: reports that nothing is held any more, if everything was released or given up. Otherwise the store
    /// counts the ranges that it believes to be held as uncertain, as after a crash.
    pub(super) async fn report_stop(&self) {
        let is_reported = self.answer_recalls().await.is_ok();
        if is_reported && !self.inner.has_unknown_releases.load(Ordering::Acquire) {
            let _ = self.inner.store.leave().await;
        }
    }

    pub(crate) fn recalls_answered(&self) -> u64 {
        self.inner.recalls_answered.load(Ordering::Acquire)
    }
}

impl<S: Store> Inner<S> {
    /// Gives up all held positions if the store was restored: it may grant them to others. Called after every answer of
    /// the store, before any of it is held. Grants on their way are given up too: they may be from before the restore.
    pub(super) fn discard_if_restored(&self) {
        let era = self.store.era();
        if self.era.load(Ordering::Acquire) != era && self.era.swap(era, Ordering::AcqRel) != era {
            self.discard(|_| true);
        }
    }

    /// Releases a range that was granted in this era of the store; in a later era, gives it up.
    pub(super) async fn release(&self, release: ReleaseRequest, era: u64) -> StoreResult<ReleaseOutcome> {
        if self.store.era() != era {
            self.given_up.add(release.scope_id, release.lost.into_iter().chain([release.range]));
            return Ok(ReleaseOutcome::Gap);
        }
        self.store.release(release).await
    }

    /// As [`Self::release`], for many scopes.
    pub(super) async fn release_many(
        &self,
        releases: Vec<ReleaseRequest>,
        era: u64,
    ) -> Vec<StoreResult<ReleaseOutcome>> {
        if self.store.era() == era {
            return self.store.release_all(releases).await;
        }
        let mut outcomes = Vec::with_capacity(releases.len());
        for release in releases {
            outcomes.push(self.release(release, era).await);
        }
        outcomes
    }

    /// Takes all positions of these cells out of memory; grants on their way follow when they arrive.
    pub(super) fn discard(&self, of: impl Fn(&Cell) -> bool) {
        self.shards.sweep(|cell| {
            if of(cell) {
                let ranges = cell.discard();
                self.given_up.add(cell.scope_id(), ranges);
            }
            false
        });
    }

    /// Waits for refills that were under way when their cells were discarded: their grants are given up too.
    async fn discarded_refills_ended(&self, series: &SeriesName) {
        loop {
            let ended = self.tasks.ended();
            if !self.shards.any(|cell| cell.series.name() == series && cell.is_refill_discarded()) {
                return;
            }
            ended.await;
        }
    }

    pub(super) async fn report_all(&self) -> StoreResult<()> {
        let all: Vec<SeriesName> = self.given_up.0.lock().keys().cloned().collect();
        for series in all {
            self.report(&series, None).await?;
        }
        self.report_burned().await
    }

    async fn report(&self, series: &SeriesName, epoch: Option<u64>) -> StoreResult<()> {
        let unused = self.given_up.of(series);
        self.store.give_up(series.clone(), epoch, unused.clone()).await?;
        self.given_up.remove(series, &unused);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_report_of_the_same_ranges_removes_no_later_range() {
        let scope_id = ScopeId { series: "key".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() };
        let range = |from| PositionRange::new(from, from + 10).unwrap();
        let given_up = GivenUpRanges::default();
        given_up.add(scope_id.clone(), [range(1), range(11)]);
        let [one, other] = [given_up.of(&scope_id.series), given_up.of(&scope_id.series)];
        given_up.remove(&scope_id.series, &one);
        given_up.add(scope_id.clone(), [range(21)]);
        given_up.remove(&scope_id.series, &other);
        assert_eq!(given_up.of(&scope_id.series), [(scope_id.scope.clone(), range(21))]);
        given_up.remove(&scope_id.series, &given_up.of(&scope_id.series));
        assert_eq!(given_up.held_from(&scope_id, None), None, "all is reported");
    }
}

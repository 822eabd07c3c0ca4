//! Ranges that this process gives up before they are used: recalled, or granted by a store that was taken back since.
//!
//! Invariant: what is given up is not handed out afterwards, and is reported until the store has written it down.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::cell::Cell;
use super::{Dispenser, Inner};
use crate::ledger::{Surrendered, Tail};
use crate::range::Lease;
use crate::recall::Recall;
use crate::scope::{Place, ScopeKey};
use crate::series::SeriesName;
use crate::store::{Store, StoreError};

/// What was given up and is not reported yet, by series.
#[derive(Default)]
pub(super) struct GivenUp(Mutex<BTreeMap<SeriesName, Vec<(ScopeKey, Lease)>>>);

impl GivenUp {
    pub(super) fn add(&self, place: Place, ranges: impl IntoIterator<Item = Lease>) {
        let mut ranges = ranges.into_iter().peekable();
        if ranges.peek().is_some() {
            let mut all = self.0.lock();
            let of_series = all.entry(place.series).or_default();
            of_series.extend(ranges.map(|range| (place.scope.clone(), range)));
        }
    }

    /// From where on a process says that it holds something of a scope: the store takes all below for handed out, and
    /// what was given up must not be, until it is reported.
    pub(super) fn held_from(&self, place: &Place, held_from: Option<u64>) -> Option<u64> {
        let all = self.0.lock();
        let of_scope =
            all.get(&place.series).into_iter().flatten().filter(|(scope, _)| *scope == place.scope);
        of_scope.map(|(_, range)| range.from()).chain(held_from).min()
    }

    fn of(&self, series: &SeriesName) -> Vec<(ScopeKey, Lease)> {
        self.0.lock().get(series).cloned().unwrap_or_default()
    }

    fn series(&self) -> Vec<SeriesName> {
        self.0.lock().keys().cloned().collect()
    }

    /// The first `count` of a series are reported; others may have come since.
    fn reported(&self, series: &SeriesName, count: usize) {
        let mut all = self.0.lock();
        if let Some(of_series) = all.get_mut(series) {
            of_series.drain(..count);
            if of_series.is_empty() {
                all.remove(series);
            }
        }
    }
}

impl<S: Store> Dispenser<S> {
    /// Answers the recalls of the store, and reports what was given up. What fails is tried with the next call.
    pub(crate) async fn answer_recalls(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        for Recall { series, epoch } in inner.store.recalls().await? {
            inner.discard(|cell| cell.series().name() == &series);
            inner.discarded_refills_ended(&series).await;
            inner.report(&series, Some(epoch)).await?;
            inner.recalls_answered.fetch_add(1, Ordering::AcqRel);
        }
        inner.report_all().await
    }

    /// Reports that nothing is held any more, once everything was given back or reported. Where that failed, the store
    /// counts what it believes to be held as uncertain.
    pub(super) async fn leave(&self) {
        let is_reported = self.answer_recalls().await.is_ok();
        if is_reported && !self.inner.has_unknown_tails.load(Ordering::Acquire) {
            let _ = self.inner.store.leave().await;
        }
    }

    pub(crate) fn recalls_answered(&self) -> u64 {
        self.inner.recalls_answered.load(Ordering::Acquire)
    }
}

impl<S: Store> Inner<S> {
    /// Gives up what is held if the store no longer vouches for it: it may be granted to others. Asked behind every
    /// answer of the store, before anything of it is held. What is on its way is given up as well: nobody can tell which
    /// side of the change it was granted on.
    pub(super) fn keep_up(&self) {
        let era = self.store.era();
        if self.era.load(Ordering::Acquire) == era || self.era.swap(era, Ordering::AcqRel) == era {
            return;
        }
        self.discard(|_| true);
    }

    /// Gives a tail back that was granted in an era, unless that is over.
    pub(super) async fn surrender(&self, tail: Tail, era: u64) -> Result<Surrendered, StoreError> {
        if self.store.era() != era {
            self.given_up.add(tail.place, tail.lost.into_iter().chain([tail.lease]));
            return Ok(Surrendered::Gap);
        }
        self.store.surrender(tail).await
    }

    /// Takes what cells hold out of memory; what is on its way to them follows when it arrives.
    pub(super) fn discard(&self, of: impl Fn(&Cell) -> bool) {
        self.shards.sweep(|cell| {
            if of(cell) {
                let ranges = cell.discard();
                self.given_up.add(cell.place(), ranges);
            }
            false
        });
    }

    /// Waits for refills that were under way when their cells were discarded: what they bring is given up, too.
    async fn discarded_refills_ended(&self, series: &SeriesName) {
        loop {
            let ended = self.refills.ended();
            if !self.shards.any(|cell| cell.series().name() == series && cell.is_refill_discarded()) {
                return;
            }
            ended.await;
        }
    }

    /// Reports what was given up in every series.
    pub(super) async fn report_all(&self) -> Result<(), StoreError> {
        for series in self.given_up.series() {
            self.report(&series, None).await?;
        }
        self.report_burned().await
    }

    async fn report(&self, series: &SeriesName, epoch: Option<u64>) -> Result<(), StoreError> {
        let unused = self.given_up.of(series);
        let count = unused.len();
        self.store.give_up(series.clone(), epoch, unused).await?;
        self.given_up.reported(series, count);
        Ok(())
    }
}

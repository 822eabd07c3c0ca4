//! The audit of the stores that only tests have: the model's, and one that fails on purpose.

use std::sync::atomic::Ordering;

use bates_core::{Audit, Record, RecordFilter, SeriesName, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use super::{FaultyStore, MemoryStore};

impl Audit for MemoryStore {
    async fn record(&self, records: Vec<Record>) -> Result<(), StoreError> {
        let mut state = self.state();
        for record in records {
            state.known(&record.place.series)?;
            state.records.insert((record.taking.at, record.id), record);
        }
        Ok(())
    }

    async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let state = self.state();
        let behind = state.records.iter().filter(|(key, _)| after.is_none_or(|after| **key > after));
        let found = behind.map(|(_, record)| record).filter(|record| is_of(&of, record));
        Ok(found.take(limit).cloned().collect())
    }

    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let mut state = self.state();
        let old =
            state.records.iter().filter(|((at, _), record)| record.place.series == series && *at < before);
        let old: Vec<(Timestamp, Uuid)> = old.map(|(key, _)| *key).take(limit).collect();
        for key in &old {
            state.records.remove(key);
        }
        Ok(old.len() as u64)
    }
}

fn is_of(of: &RecordFilter, record: &Record) -> bool {
    let Record { place, range, taking, .. } = record;
    of.series.as_ref().is_none_or(|series| *series == place.series)
        && of.scope.as_ref().is_none_or(|scope| *scope == place.scope)
        && of.position.is_none_or(|position| (range.from()..range.to()).contains(&position))
        && of.who.as_ref().is_none_or(|who| *who == taking.who)
        && of.since.is_none_or(|since| taking.at >= since)
        && of.until.is_none_or(|until| taking.at < until)
}

impl<S: Audit> Audit for FaultyStore<S> {
    async fn record(&self, records: Vec<Record>) -> Result<(), StoreError> {
        if self.is_unrecorded.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("no room, says a test".into()));
        }
        self.inner.record(records).await
    }

    async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.inner.records(of, after, limit).await
    }

    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.inner.prune_records(series, before, limit).await
    }
}

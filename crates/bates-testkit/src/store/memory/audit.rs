//! The audit of a store in memory.

use bates_core::{AuditStore, Record, RecordFilter, SeriesName, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use super::{MemoryStore, page};

impl AuditStore for MemoryStore {
    async fn record(&self, records: Vec<Record>) -> Result<(), StoreError> {
        self.node.faults.check_records()?;
        let mut data = self.data();
        for record in records {
            data.series(&record.place.series)?;
            data.records.insert((record.taking.at, record.id), record);
        }
        Ok(())
    }

    async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        Ok(page(&self.data().records, after, limit, |(_, record)| is_of(&of, record).then(|| record.clone())))
    }

    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let mut data = self.data();
        let is_old = |at: &Timestamp, record: &Record| record.place.series == series && *at < before;
        let old = data.records.extract_if(.., |(at, _), record| is_old(at, record));
        Ok(old.take(limit).count() as u64)
    }
}

fn is_of(of: &RecordFilter, record: &Record) -> bool {
    let Record { place, range, taking, .. } = record;
    of.series.as_ref().is_none_or(|series| *series == place.series)
        && of.scope.as_ref().is_none_or(|scope| *scope == place.scope)
        && of.position.is_none_or(|position| (range.from()..range.to()).contains(&position.value()))
        && of.who.as_ref().is_none_or(|who| *who == taking.who)
        && of.since.is_none_or(|since| taking.at >= since)
        && of.until.is_none_or(|until| taking.at < until)
}

//! The audit of a store in memory.

use bates_core::{AuditFilter, AuditRecord, AuditStore, SeriesName, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use super::{MemoryStore, page};

impl AuditStore for MemoryStore {
    async fn record(&self, records: Vec<AuditRecord>) -> Result<(), StoreError> {
        self.node.faults.check_records()?;
        let mut data = self.data();
        for record in records {
            data.series(&record.scope_id.series)?;
            data.records.insert((record.stamp.at, record.id), record);
        }
        Ok(())
    }

    async fn records(
        &self,
        filter: AuditFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(page(&self.data().records, after, limit, |(_, record)| {
            is_match(&filter, record).then(|| record.clone())
        }))
    }

    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let mut data = self.data();
        let is_old = |at: &Timestamp, record: &AuditRecord| record.scope_id.series == series && *at < before;
        let old = data.records.extract_if(.., |(at, _), record| is_old(at, record));
        Ok(old.take(limit).count() as u64)
    }
}

fn is_match(filter: &AuditFilter, record: &AuditRecord) -> bool {
    let AuditRecord { scope_id, range, stamp, .. } = record;
    filter.among.contains(&scope_id.series)
        && filter.series.as_ref().is_none_or(|series| *series == scope_id.series)
        && filter.scope.as_ref().is_none_or(|scope| scope.matches(&scope_id.scope))
        && filter.position.is_none_or(|position| (range.from()..range.to()).contains(&position.value()))
        && filter.caller.as_ref().is_none_or(|caller| *caller == stamp.caller)
        && filter.since.is_none_or(|since| stamp.at >= since)
        && filter.until.is_none_or(|until| stamp.at < until)
}

//! The audit in the shared store. Records that wait at a node are written together; a document's is written by the
//! batch that numbers it. Times are those of the nodes.

mod recorder;
mod sql;

use bates_core::{AuditStore, Record, RecordFilter, SeriesName, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use crate::PostgresStore;

pub(crate) use recorder::Recorder;
pub(crate) use sql::insert;

impl AuditStore for PostgresStore {
    async fn record(&self, records: Vec<Record>) -> Result<(), StoreError> {
        self.recorder().record(self.shared(), records).await
    }

    async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let of = &of;
        self.done(|session| async move { sql::records(&session, of, after, limit).await }).await
    }

    /// Asked again after a lost answer, what was removed before is not counted.
    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let series = &series;
        self.done(|session| async move { sql::prune(&session, series, before, limit).await }).await
    }
}

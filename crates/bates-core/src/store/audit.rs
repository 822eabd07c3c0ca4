//! The port to the audit: records written before anything of them is answered, read in pages, and removed when they
//! are old. What every store must do is tested in one place, `bates_testkit::claims`.

use std::future::Future;

use jiff::Timestamp;
use uuid::Uuid;

use super::StoreError;
use crate::audit::{Record, RecordFilter};
use crate::series::SeriesName;

/// A durable keeper of records.
pub trait AuditStore: Send + Sync + 'static {
    /// Writes records down. Calls that wait together share one commit.
    ///
    /// Invariant: when it answers, they are on disk. A call that was cancelled or failed may have written them.
    fn record(&self, records: Vec<Record>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records in the order of their times and ids, after `after`, at most `limit`.
    fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Record>, StoreError>> + Send;

    /// Removes records of a series from before a moment, at most `limit`; answers how many.
    fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

//! The port to the audit: records are written before their numbers are answered, and removed when they expire.

use jiff::Timestamp;
use uuid::Uuid;

use super::StoreResult;
use crate::audit::{AuditFilter, AuditRecord};
use crate::series::SeriesName;

#[trait_variant::make(Send)]
pub trait AuditStore: Send + Sync + 'static {
    /// Writes records. Calls that wait together share one commit.
    ///
    /// Invariant: when it answers, the records are on disk. A call that was cancelled or failed may have written them.
    async fn record(&self, records: Vec<AuditRecord>) -> StoreResult<()>;

    /// Records in the order of their times and ids, after `after`, at most `limit`.
    async fn records(
        &self,
        of: AuditFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<AuditRecord>>;

    /// Removes records of a series that are older than `before`, at most `limit`; answers how many.
    async fn prune_records(&self, series: SeriesName, before: Timestamp, limit: usize) -> StoreResult<u64>;
}

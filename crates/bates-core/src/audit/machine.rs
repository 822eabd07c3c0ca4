//! Records the numbers that leave an audited series.
//!
//! Invariant: no number of an audited series is answered before its record is durable. A crash in between leaves a
//! record without an answer, or a number that reached no caller.

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Actor, AuditFilter, AuditRecord, AuditStamp, Channel};
use crate::error::IssueError;
use crate::machine::{Machine, NumberedRange, TakenNumbers};
use crate::range::TakenPositions;
use crate::scope::ScopeId;
use crate::series::{OpenScope, SeriesEntry};
use crate::store::{Store, StoreResult};

const PRUNE_BATCH: usize = 10_000;

impl<S: Store> Machine<S> {
    /// Whether numbers just taken through an entry must be recorded. If the series was changed meanwhile, they may have come
    /// from its current entry, so that one counts too.
    pub(crate) fn is_audited(&self, entry: &SeriesEntry) -> bool {
        entry.spec.audit.is_on()
            || entry.series.is_retired()
                && self.series(entry.series.name().as_str()).is_some_and(|current| current.spec.audit.is_on())
    }

    /// The stamp of a document, if the series is audited.
    pub(crate) fn document_stamp(
        &self,
        of: &SeriesEntry,
        channel: Channel,
        caller: &str,
    ) -> Option<AuditStamp> {
        self.is_audited(of).then(|| Actor { caller, channel }.stamp(self.runtime.now()))
    }

    pub(crate) async fn record_numbers(
        &self,
        scope_id: &ScopeId,
        taken: &TakenNumbers,
        actor: Actor<'_>,
    ) -> Result<(), IssueError> {
        if taken.ranges.is_empty() {
            return Ok(());
        }
        let stamp = actor.stamp(self.runtime.now());
        let record = |NumberedRange { range, numbers }: &NumberedRange| {
            let id = self.runtime.new_id();
            AuditRecord::of_numbers(id, scope_id, *range, &taken.numbers, numbers.clone(), &stamp)
        };
        self.write_records(scope_id, taken.ranges.iter().filter_map(record).collect()).await
    }

    /// Records positions, which the caller gets instead of numbers, if the series is audited.
    pub(crate) async fn record_positions(
        &self,
        open: &OpenScope<'_>,
        taken: &TakenPositions,
        actor: Actor<'_>,
    ) -> Result<(), IssueError> {
        if !self.is_audited(open.entry) {
            return Ok(());
        }
        let stamp = actor.stamp(self.runtime.now());
        let record = |range| AuditRecord::of_positions(self.runtime.new_id(), open, range, &stamp);
        self.write_records(&open.scope_id, taken.ranges().map(record).collect()).await
    }

    async fn write_records(&self, scope_id: &ScopeId, records: Vec<AuditRecord>) -> Result<(), IssueError> {
        let recorded = self.store().record(records).await;
        recorded.map_err(|error| IssueError::Unrecorded { scope_id: scope_id.clone(), error })
    }

    /// In the order of their times and ids, after `after`, at most `limit`.
    pub async fn records(
        &self,
        of: AuditFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<AuditRecord>> {
        self.store().records(of, after, limit).await
    }

    /// Removes expired records, some of each series. Returns how many.
    pub async fn prune_records(&self) -> StoreResult<u64> {
        let entries: Vec<Arc<SeriesEntry>> = self.registry().entries().cloned().collect();
        let mut removed = 0;
        for entry in entries {
            let Some(retention) = entry.spec.audit.retention() else { continue };
            let Ok(before) = self.runtime.now().checked_sub(retention) else { continue };
            let series = entry.series.name().clone();
            removed += self.store().prune_records(series, before, PRUNE_BATCH).await?;
        }
        Ok(removed)
    }
}

//! Records what leaves an audited series.
//!
//! Invariant: no number of an audited series is answered before its record is durable. A crash in between leaves a
//! record without an answer, or a number that reached no caller.

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::{By, How, Record, RecordFilter, Taking};
use crate::error::IssueError;
use crate::machine::{Drawn, Machine, Piece};
use crate::range::Taken;
use crate::scope::Place;
use crate::series::{Entry, OpenScope};
use crate::store::{Store, StoreError};

const PRUNE_AT_ONCE: usize = 10_000;

impl<S: Store> Machine<S> {
    /// Whether numbers just taken through an entry must be recorded. If the entry was changed meanwhile, they may have
    /// come from the series in its place.
    pub(crate) fn is_audited(&self, entry: &Entry) -> bool {
        entry.spec.audit.is_on()
            || entry.series.is_retired()
                && self.named(entry.series.name().as_str()).is_some_and(|current| current.spec.audit.is_on())
    }

    /// Who takes the number of a document, if that must be recorded with it.
    pub(crate) fn taking(&self, entry: &Entry, how: How, who: &str) -> Option<Taking> {
        self.is_audited(entry).then(|| By { who, how }.at(self.runtime.now()))
    }

    pub(crate) async fn record(&self, place: &Place, drawn: &Drawn, by: By<'_>) -> Result<(), IssueError> {
        if drawn.pieces.is_empty() {
            return Ok(());
        }
        let taking = by.at(self.runtime.now());
        let record = |Piece { range, numbers }: &Piece| {
            let id = self.runtime.new_id();
            Record::of_numbers(id, place, *range, &drawn.numbers, numbers.clone(), &taking)
        };
        self.write_records(place, drawn.pieces.iter().filter_map(record).collect()).await
    }

    /// Records positions that are answered as they are, if the series is audited.
    pub(crate) async fn record_taken(
        &self,
        open: &OpenScope<'_>,
        taken: &Taken,
        by: By<'_>,
    ) -> Result<(), IssueError> {
        if !self.is_audited(open.entry) {
            return Ok(());
        }
        let (place, taking) = (&open.place, by.at(self.runtime.now()));
        let record = |range| Record::of_positions(self.runtime.new_id(), place, range, &open.scope, &taking);
        self.write_records(place, taken.leases().map(record).collect()).await
    }

    async fn write_records(&self, place: &Place, records: Vec<Record>) -> Result<(), IssueError> {
        let recorded = self.store().record(records).await;
        recorded.map_err(|error| IssueError::Unrecorded { place: place.clone(), error })
    }

    /// In the order of their times and ids, after `after`, at most `limit`.
    pub async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.store().records(of, after, limit).await
    }

    /// Removes expired records, some of each series. Returns how many.
    pub async fn prune_records(&self) -> Result<u64, StoreError> {
        let entries: Vec<Arc<Entry>> = self.registry().entries().cloned().collect();
        let mut removed = 0;
        for entry in entries {
            let Some(retention) = entry.spec.audit.retention() else { continue };
            let Ok(before) = self.runtime.now().checked_sub(retention) else { continue };
            let series = entry.series.name().clone();
            removed += self.store().prune_records(series, before, PRUNE_AT_ONCE).await?;
        }
        Ok(removed)
    }
}

//! What leaves an audited series is recorded first. Other series never come here but for one look.
//!
//! Invariant: no number of an audited series is answered before its record is durable. A crash in between leaves a
//! record without an answer, or a number that nobody was told.

use std::sync::Arc;

use bates_pattern::Scope;
use jiff::Timestamp;
use uuid::Uuid;

use super::{By, How, Record, RecordFilter, Taking};
use crate::error::IssueError;
use crate::machine::{Machine, Numbers};
use crate::range::{Lease, Taken};
use crate::scope::{Place, ScopeKey};
use crate::series::Entry;
use crate::store::{Store, StoreError};

/// Records that are removed together.
const PRUNE_AT_ONCE: usize = 10_000;

/// What was taken of an audited series and is not recorded yet.
#[derive(Default)]
pub(crate) struct Drawn {
    pieces: Vec<Piece>,
    /// Whether it has to be known of every series, not only of those that are audited.
    is_always_noted: bool,
}

/// A range, and which of all numbers came from it.
struct Piece {
    range: Lease,
    numbers: std::ops::Range<usize>,
}

impl Drawn {
    /// What is noted of whatever series.
    pub(crate) fn always() -> Self {
        Self { is_always_noted: true, ..Self::default() }
    }

    /// The ranges, ascending.
    pub(crate) fn ranges(&self) -> Vec<Lease> {
        self.pieces.iter().map(|piece| piece.range).collect()
    }

    /// Adds what was taken, of which the numbers from `begin` on came. A range that goes on is one.
    fn add(&mut self, taken: &Taken, numbers: &Numbers, mut begin: usize) {
        for range in taken.leases() {
            let within = numbers.positions_from(begin).take_while(|position| *position < range.to()).count();
            let end = begin + within;
            match self.pieces.last_mut() {
                Some(last) if let Some(range) = last.range.joined(range) => {
                    *last = Piece { range, numbers: last.numbers.start..end };
                }
                _ => self.pieces.push(Piece { range, numbers: begin..end }),
            }
            begin = end;
        }
    }
}

impl<S: Store> Machine<S> {
    /// Whether what was just taken through an entry has to be recorded. One that was changed meanwhile stands for the
    /// series in its place, from which the numbers may have come.
    pub(crate) fn is_audited(&self, entry: &Entry) -> bool {
        entry.spec.audit.is_on()
            || entry.series.is_retired()
                && self.named(entry.series.name().as_str()).is_some_and(|current| current.spec.audit.is_on())
    }

    /// Notes what was just taken, and which numbers came from it, if that has to be recorded.
    pub(crate) fn note(
        &self,
        entry: &Entry,
        drawn: &mut Drawn,
        (taken, numbers, begin): (&Taken, &Numbers, usize),
    ) {
        if drawn.is_always_noted || self.is_audited(entry) {
            drawn.add(taken, numbers, begin);
        }
    }

    /// Who takes the number of a document, if that has to be recorded with it.
    pub(crate) fn taking(&self, entry: &Entry, how: How, who: &str) -> Option<Taking> {
        self.is_audited(entry).then(|| By { who, how }.at(self.runtime.now()))
    }

    /// Records what was drawn, durably.
    pub(crate) async fn record(
        &self,
        entry: &Entry,
        scope: &ScopeKey,
        (drawn, numbers): (Drawn, &Numbers),
        by: By<'_>,
    ) -> Result<(), IssueError> {
        if drawn.pieces.is_empty() {
            return Ok(());
        }
        let (place, taking) = (place(entry, scope), by.at(self.runtime.now()));
        let pieces = drawn.pieces.into_iter();
        let records = pieces
            .filter_map(|piece| {
                Record::of_numbers(
                    self.runtime.new_id(),
                    &place,
                    piece.range,
                    numbers,
                    piece.numbers,
                    &taking,
                )
            })
            .collect();
        self.write_records(place, records).await
    }

    /// Records positions that are answered as they are, if the series is audited.
    pub(crate) async fn record_taken(
        &self,
        entry: &Entry,
        (scope, key): (&Scope, &ScopeKey),
        taken: &Taken,
        by: By<'_>,
    ) -> Result<(), IssueError> {
        if !self.is_audited(entry) {
            return Ok(());
        }
        let (place, taking) = (place(entry, key), by.at(self.runtime.now()));
        let records = taken
            .leases()
            .map(|range| Record::of_positions(self.runtime.new_id(), &place, range, scope, &taking))
            .collect();
        self.write_records(place, records).await
    }

    async fn write_records(&self, place: Place, records: Vec<Record>) -> Result<(), IssueError> {
        let recorded = self.store().record(records).await;
        recorded.map_err(|error| IssueError::Unrecorded { place, error })
    }

    /// Records in the order of their times and ids, after `after`, at most `limit`.
    pub async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.store().records(of, after, limit).await
    }

    /// Removes records whose time is over: some of each series. Answers how many.
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

impl Entry {
    /// Where an identifier of the series lies: its scope, if it shows all of it, and its position.
    pub fn locate(&self, id: &str) -> Option<(Option<ScopeKey>, u64)> {
        let parsed = self.series.pattern().parse(id).ok()?;
        let is_whole = parsed.parameters().count() == self.parameters.len();
        let scope = ScopeKey::new(parsed.parameters(), parsed.period()).ok().filter(|_| is_whole);
        Some((scope, parsed.position().value()))
    }
}

fn place(entry: &Entry, scope: &ScopeKey) -> Place {
    Place { series: entry.series.name().clone(), scope: scope.clone() }
}

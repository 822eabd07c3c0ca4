//! Reconciliation: compares the cursor of each scope with the ledger, the outbox and the held ranges, and writes the gaps
//! that it finds. Its cost grows with the count of scopes and ranges, not of numbers.

use std::collections::HashMap;

use bates_pattern::Position;
use jiff::Timestamp;

use super::{
    AcceptedPositions, DocumentPositions, DocumentSource, Gap, GapFilter, MissingRange, ScopePositions,
};
use crate::caller::Permissions;
use crate::machine::Machine;
use crate::range::{PositionRange, RangeSet};
use crate::scope::{ScopeId, ScopeKey};
use crate::series::{Promise, SeriesEntry, SeriesName};
use crate::store::{Store, StoreError, StoreResult};

const SCOPES_AT_ONCE: usize = 1_000;
const ADOPTED_PAGE: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReconcileReport {
    pub scopes: u64,
    pub gaps: u64,
    /// Positions that are certainly missing.
    pub missing: u64,
    /// Positions that may have been used: of crashed processes, of pools that lost data, of deliveries without an answer.
    pub uncertain: u64,
    /// Texts of the user's documents that are not numbers of their series.
    pub unreadable: u64,
}

impl<S: Store> Machine<S> {
    /// Sets from where reconciliation reads the user's own documents. Only the first call counts.
    pub fn set_document_sources(&self, sources: HashMap<SeriesName, Box<dyn DocumentSource>>) {
        let _ = self.document_sources.set(sources);
    }

    /// Reconciles a series, or all of them, and writes the gaps.
    pub async fn reconcile(&self, only: Option<&SeriesName>) -> StoreResult<ReconcileReport> {
        let (mut report, mut unread_error) = (ReconcileReport::default(), None);
        let entries: Vec<_> = self.registry().entries().cloned().collect();
        for entry in entries.iter().filter(|entry| only.is_none_or(|only| entry.series.name() == only)) {
            match self.reconcile_series(entry, &mut report).await {
                // The other series are reconciled nevertheless.
                Err(error @ StoreError::Documents(_)) => unread_error = Some(error),
                reconciled => reconciled?,
            }
        }
        unread_error.map_or(Ok(report), Err)
    }

    /// Reads the user's documents after the records of the store, so that a document saved meanwhile is not called missing.
    async fn reconcile_series(&self, entry: &SeriesEntry, report: &mut ReconcileReport) -> StoreResult<()> {
        let (name, began) = (entry.series.name(), self.runtime.now());
        let source = self.document_sources.get().and_then(|sources| sources.get(name));
        let (mut scopes, mut after) = (Vec::new(), None);
        loop {
            let page = self.store().scope_positions(name.clone(), after, SCOPES_AT_ONCE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            scopes.extend(page);
            if source.is_none() {
                self.write_gaps(entry, std::mem::take(&mut scopes), None, report).await?;
            }
        }
        let Some(source) = source else { return self.store().set_reconciled(name.clone(), began).await };
        let mut positions = DocumentPositions::default();
        let read = source.numbers(&mut |number| positions.add(entry.series.pattern(), number)).await;
        read.map_err(|reason| {
            let name = name.as_str();
            StoreError::Documents(format!("the documents of series {name:?} cannot be read: {reason}").into())
        })?;
        report.unreadable += positions.unreadable;
        self.write_gaps(entry, scopes, Some(&positions), report).await?;
        self.store().set_reconciled(name.clone(), began).await
    }

    async fn write_gaps(
        &self,
        entry: &SeriesEntry,
        scopes: Vec<(ScopeKey, ScopePositions)>,
        saved: Option<&DocumentPositions>,
        report: &mut ReconcileReport,
    ) -> StoreResult<()> {
        let mut gaps: Vec<(ScopeKey, Vec<MissingRange>)> = Vec::new();
        for (key, mut scope) in scopes {
            self.load_adopted(entry, &key, &mut scope, saved.is_some()).await?;
            let saved = saved.map(|saved| saved.of(&key));
            let missing = entry.missing(&key, &scope, saved.as_ref());
            gaps.push((key, missing));
        }
        report.add(&gaps);
        self.store().replace_gaps(entry.series.name().clone(), gaps).await
    }

    /// Reads the adopted positions that lie in ranges which could be missing.
    async fn load_adopted(
        &self,
        entry: &SeriesEntry,
        key: &ScopeKey,
        scope: &mut ScopePositions,
        has_saved: bool,
    ) -> StoreResult<()> {
        if scope.adopted_to == 0 {
            return Ok(());
        }
        let may_miss_any = has_saved || entry.series.promise() == Promise::Gapless;
        let suspect: Vec<PositionRange> = if may_miss_any {
            PositionRange::new(entry.series.start().value(), scope.next).into_iter().collect()
        } else {
            scope.lost.iter().chain(&scope.undelivered).map(|missing| missing.range).collect()
        };
        let scope_id = entry.series.scope_id(key);
        for range in suspect {
            let (mut from, to) = (range.from(), range.to().min(scope.adopted_to));
            while from < to {
                // There may be many small ranges: read no more than each can hold.
                let limit = usize::try_from(to - from).map_or(ADOPTED_PAGE, |left| left.min(ADOPTED_PAGE));
                let page = self.store().adopted_positions(scope_id.clone(), from, limit).await?;
                from = page.last().filter(|_| page.len() == limit).map_or(to, |last| last.value() + 1);
                let within = page.into_iter().take_while(|position| position.value() < to);
                scope.adopted.extend(within.map(PositionRange::one));
            }
        }
        Ok(())
    }

    /// As of when the gaps of a series are, or of all that the caller may read: the earliest. `None` if one of them was
    /// never reconciled.
    pub async fn reconciled_at(
        &self,
        permissions: &Permissions,
        series: Option<&SeriesName>,
    ) -> StoreResult<Option<Timestamp>> {
        let times: HashMap<SeriesName, Timestamp> = self.store().reconciled().await?.into_iter().collect();
        if let Some(series) = series {
            return Ok(times.get(series).copied());
        }
        let registry = self.registry();
        let names = registry.entries().map(|entry| entry.series.name());
        let readable = names.filter(|name| permissions.series().contains(name));
        let times: Option<Vec<Timestamp>> = readable.map(|name| times.get(name).copied()).collect();
        Ok(times.and_then(|times| times.into_iter().min()))
    }

    /// The number at a position of a gap. `None` if the series was retired, or its numbers show a day within a period.
    pub fn number_at(&self, scope_id: &ScopeId, position: u64) -> Option<String> {
        let entry = self.series(scope_id.series.as_str())?;
        entry.scope_in_period(&scope_id.scope)?.number(Position::new(position)?).ok()
    }

    pub async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(ScopeId, u64)>,
        limit: usize,
    ) -> StoreResult<Vec<Gap>> {
        self.store().gaps(of, after, limit).await
    }
}

impl ReconcileReport {
    fn add(&mut self, gaps: &[(ScopeKey, Vec<MissingRange>)]) {
        self.scopes += gaps.len() as u64;
        for MissingRange { range, reason } in gaps.iter().flat_map(|(_, missing)| missing) {
            self.gaps += 1;
            *(if reason.is_uncertain() { &mut self.uncertain } else { &mut self.missing }) += range.count();
        }
    }
}

impl SeriesEntry {
    /// The missing positions that are numbers: positions that the rules reject are not gaps.
    fn missing(&self, key: &ScopeKey, scope: &ScopePositions, saved: Option<&RangeSet>) -> Vec<MissingRange> {
        let missing = scope.missing(self.series.promise(), self.series.start().value(), saved);
        let accepted = AcceptedPositions::of(self, key);
        let mut numbers = Vec::new();
        for MissingRange { range, reason } in missing {
            numbers.extend(MissingRange::all(accepted.within(range).iter(), reason));
        }
        numbers
    }
}

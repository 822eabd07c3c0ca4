//! Reconciliation: the cursor of each scope against the ledger, the outbox and what is held, and the gaps that remain.
//! Costs as much as there are scopes and ranges, not numbers.

use std::collections::HashMap;

use super::{
    AcceptedPositions, DocumentPositions, DocumentSource, Gap, GapFilter, MissingRange, Reconciliation,
};
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
    /// Positions in gaps that leave no doubt.
    pub missing: u64,
    /// Positions that a crashed process may have used.
    pub uncertain: u64,
    /// Texts of the user's documents that are not numbers of their series.
    pub unreadable: u64,
}

impl<S: Store> Machine<S> {
    /// Sets where the user's documents are, which reconciliation reads. Only the first call counts.
    pub fn set_document_sources(&self, saved: HashMap<SeriesName, Box<dyn DocumentSource>>) {
        let _ = self.document_sources.set(saved);
    }

    /// Reconciles a series, or all of them, and writes what is missing.
    pub async fn reconcile(&self, only: Option<&SeriesName>) -> StoreResult<ReconcileReport> {
        let (mut found, mut unread) = (ReconcileReport::default(), None);
        let entries: Vec<_> = self.registry().entries().cloned().collect();
        for entry in entries.iter().filter(|entry| only.is_none_or(|only| entry.series.name() == only)) {
            match self.reconcile_series(entry, &mut found).await {
                // The other series are reconciled all the same.
                Err(error @ StoreError::Documents(_)) => unread = Some(error),
                reconciled => reconciled?,
            }
        }
        unread.map_or(Ok(found), Err)
    }

    /// Reads the user's documents after all accounts, so that a document which is saved meanwhile is not missed.
    async fn reconcile_series(&self, entry: &SeriesEntry, found: &mut ReconcileReport) -> StoreResult<()> {
        let name = entry.series.name();
        let saved = self.document_sources.get().and_then(|saved| saved.get(name));
        let (mut accounts, mut after) = (Vec::new(), None);
        loop {
            let page = self.store().reconciliations(name.clone(), after, SCOPES_AT_ONCE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            accounts.extend(page);
            if saved.is_none() {
                self.write_gaps(entry, std::mem::take(&mut accounts), None, found).await?;
            }
        }
        let Some(saved) = saved else { return Ok(()) };
        let mut positions = DocumentPositions::default();
        let read = saved.numbers(&mut |number| positions.add(entry.series.pattern(), number)).await;
        let told = |reason| format!("the documents of series {:?} cannot be read: {reason}", name.as_str());
        read.map_err(|reason| StoreError::Documents(told(reason).into()))?;
        found.unreadable += positions.unreadable;
        self.write_gaps(entry, accounts, Some(&positions), found).await
    }

    async fn write_gaps(
        &self,
        entry: &SeriesEntry,
        accounts: Vec<(ScopeKey, Reconciliation)>,
        saved: Option<&DocumentPositions>,
        found: &mut ReconcileReport,
    ) -> StoreResult<()> {
        let mut scopes: Vec<(ScopeKey, Vec<MissingRange>)> = Vec::new();
        for (key, mut account) in accounts {
            self.load_adopted(entry, &key, &mut account, saved.is_some()).await?;
            let saved = saved.map(|saved| saved.of(&key));
            scopes.push(entry.missing(key, &account, saved.as_ref()));
        }
        found.add(&scopes);
        self.store().replace_gaps(entry.series.name().clone(), scopes).await
    }

    /// Reads the adopted positions that lie in ranges which could be missing.
    async fn load_adopted(
        &self,
        entry: &SeriesEntry,
        key: &ScopeKey,
        account: &mut Reconciliation,
        has_saved: bool,
    ) -> StoreResult<()> {
        if account.adopted_to == 0 {
            return Ok(());
        }
        let whole = has_saved || entry.series.promise() == Promise::Gapless;
        let doubtful: Vec<PositionRange> = if whole {
            PositionRange::new(entry.series.start().value(), account.next).into_iter().collect()
        } else {
            account.lost.iter().chain(&account.undelivered).map(|missing| missing.range).collect()
        };
        let scope_id = entry.series.scope_id(key);
        for range in doubtful {
            let (mut from, to) = (range.from(), range.to().min(account.adopted_to));
            while from < to {
                // Ranges may be many and small.
                let limit = usize::try_from(to - from).map_or(ADOPTED_PAGE, |left| left.min(ADOPTED_PAGE));
                let page = self.store().adopted_positions(scope_id.clone(), from, limit).await?;
                from = page.last().filter(|_| page.len() == limit).map_or(to, |last| last.value() + 1);
                let within = page.into_iter().take_while(|position| position.value() < to);
                account.adopted.extend(within.map(PositionRange::one));
            }
        }
        Ok(())
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
    fn add(&mut self, scopes: &[(ScopeKey, Vec<MissingRange>)]) {
        self.scopes += scopes.len() as u64;
        for MissingRange { range, reason } in scopes.iter().flat_map(|(_, missing)| missing) {
            self.gaps += 1;
            *(if reason.is_uncertain() { &mut self.uncertain } else { &mut self.missing }) += range.count();
        }
    }
}

impl SeriesEntry {
    /// Positions that the rules reject are not gaps.
    fn missing(
        &self,
        key: ScopeKey,
        account: &Reconciliation,
        saved: Option<&RangeSet>,
    ) -> (ScopeKey, Vec<MissingRange>) {
        let missing = account.missing(self.series.promise(), self.series.start().value(), saved);
        let accepted = AcceptedPositions::of(self, &key);
        let mut numbers = Vec::new();
        for MissingRange { range, reason } in missing {
            numbers.extend(MissingRange::all(accepted.within(range).iter(), reason));
        }
        (key, numbers)
    }
}

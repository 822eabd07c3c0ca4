//! Reconciliation: the cursor of each scope against the ledger, the outbox and what is held, and the gaps that remain.
//! Costs as much as there are scopes and ranges, not numbers.

use std::collections::HashMap;

use super::{AcceptedPositions, Account, Gap, GapFilter, Missing, Saved, SavedPositions};
use crate::machine::Machine;
use crate::range::{Lease, Ranges};
use crate::scope::{Place, ScopeKey};
use crate::series::{Entry, Promise, SeriesName};
use crate::store::{Store, StoreError};

const SCOPES_AT_ONCE: usize = 1_000;
const ASIDE_AT_ONCE: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    pub scopes: u64,
    pub gaps: u64,
    /// Positions in gaps that leave no doubt.
    pub missing: u64,
    /// Positions that a crashed process may have used.
    pub uncertain: u64,
    /// Texts of the user's documents that are not numbers of their series.
    pub strangers: u64,
}

impl<S: Store> Machine<S> {
    /// Sets where the user's documents are, which reconciliation reads. Only the first call counts.
    pub fn know_documents(&self, saved: HashMap<SeriesName, Box<dyn Saved>>) {
        let _ = self.saved.set(saved);
    }

    /// Reconciles a series, or all of them, and writes what is missing.
    pub async fn reconcile(&self, only: Option<&SeriesName>) -> Result<Reconciled, StoreError> {
        let (mut found, mut unread) = (Reconciled::default(), None);
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
    async fn reconcile_series(&self, entry: &Entry, found: &mut Reconciled) -> Result<(), StoreError> {
        let name = entry.series.name();
        let saved = self.saved.get().and_then(|saved| saved.get(name));
        let (mut accounts, mut after) = (Vec::new(), None);
        loop {
            let page = self.store().accounts(name.clone(), after, SCOPES_AT_ONCE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            accounts.extend(page);
            if saved.is_none() {
                self.put_missing(entry, std::mem::take(&mut accounts), None, found).await?;
            }
        }
        let Some(saved) = saved else { return Ok(()) };
        let mut positions = SavedPositions::default();
        let read = saved.numbers(&mut |number| positions.add(entry.series.pattern(), number)).await;
        let told = |reason| format!("the documents of series {:?} cannot be read: {reason}", name.as_str());
        read.map_err(|reason| StoreError::Documents(told(reason).into()))?;
        found.strangers += positions.strangers;
        self.put_missing(entry, accounts, Some(&positions), found).await
    }

    async fn put_missing(
        &self,
        entry: &Entry,
        accounts: Vec<(ScopeKey, Account)>,
        saved: Option<&SavedPositions>,
        found: &mut Reconciled,
    ) -> Result<(), StoreError> {
        let mut scopes: Vec<(ScopeKey, Vec<Missing>)> = Vec::new();
        for (key, mut account) in accounts {
            self.know_aside(entry, &key, &mut account, saved.is_some()).await?;
            let saved = saved.map(|saved| saved.of(&key));
            scopes.push(entry.missing(key, &account, saved.as_ref()));
        }
        found.add(&scopes);
        self.store().put_gaps(entry.series.name().clone(), scopes).await
    }

    /// Reads the adopted positions that lie in ranges which could be missing.
    async fn know_aside(
        &self,
        entry: &Entry,
        key: &ScopeKey,
        account: &mut Account,
        has_saved: bool,
    ) -> Result<(), StoreError> {
        if account.aside_to == 0 {
            return Ok(());
        }
        let whole = has_saved || entry.series.promise() == Promise::Gapless;
        let doubtful: Vec<Lease> = if whole {
            Lease::new(entry.series.start().value(), account.next).into_iter().collect()
        } else {
            account.lost.iter().chain(&account.undelivered).map(|missing| missing.range).collect()
        };
        let place = entry.series.place(key);
        for range in doubtful {
            let (mut from, to) = (range.from(), range.to().min(account.aside_to));
            while from < to {
                // Ranges may be many and small.
                let limit = usize::try_from(to - from).map_or(ASIDE_AT_ONCE, |left| left.min(ASIDE_AT_ONCE));
                let page = self.store().aside(place.clone(), from, limit).await?;
                from = page.last().filter(|_| page.len() == limit).map_or(to, |last| last.value() + 1);
                let within = page.into_iter().take_while(|position| position.value() < to);
                account.aside.extend(within.map(Lease::one));
            }
        }
        Ok(())
    }

    pub async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, StoreError> {
        self.store().gaps(of, after, limit).await
    }
}

impl Reconciled {
    fn add(&mut self, scopes: &[(ScopeKey, Vec<Missing>)]) {
        self.scopes += scopes.len() as u64;
        for Missing { range, reason } in scopes.iter().flat_map(|(_, missing)| missing) {
            self.gaps += 1;
            *(if reason.is_uncertain() { &mut self.uncertain } else { &mut self.missing }) += range.count();
        }
    }
}

impl Entry {
    /// Positions that the rules reject are not gaps.
    fn missing(&self, key: ScopeKey, account: &Account, saved: Option<&Ranges>) -> (ScopeKey, Vec<Missing>) {
        let missing = account.missing(self.series.promise(), self.series.start().value(), saved);
        let accepted = AcceptedPositions::of(self, &key);
        let mut numbers = Vec::new();
        for Missing { range, reason } in missing {
            numbers.extend(Missing::all(accepted.within(range).iter(), reason));
        }
        (key, numbers)
    }
}

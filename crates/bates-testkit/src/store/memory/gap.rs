//! What a store in memory knows of positions, and the gaps that were found in it.

use bates_core::ledger::PoolState;
use bates_core::{
    Account, CLIENT_LEASE_SPAN, Gap, GapFilter, GapStore, Lease, Missing, Place, Ranges, Reason, ScopeKey,
    SeriesName, State, StoreError,
};

use super::document::DocumentRow;
use super::scope::ScopeRow;
use super::{Data, MemoryStore, page};

impl GapStore for MemoryStore {
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Account)>, StoreError> {
        let data = self.data();
        let after = after.map(|scope| Place { series: series.clone(), scope });
        Ok(page(&data.scopes, after, limit, |(place, row)| {
            let next = row.cursor.filter(|_| place.series == series)?.next;
            Some((place.scope.clone(), data.account(self, place, row, next)))
        }))
    }

    async fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> Result<(), StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        data.series(&series)?;
        for (scope, missing) in scopes {
            let place = Place { series: series.clone(), scope };
            let before: Vec<Gap> =
                data.gaps.extract_if(.., |(at, _), _| *at == place).map(|(_, gap)| gap).collect();
            for missing in missing {
                let is_same = |gap: &&Gap| {
                    gap.missing.range.from() == missing.range.from() && gap.missing.reason == missing.reason
                };
                let seen = before.iter().find(is_same).map_or(now, |gap| gap.seen);
                let gap = Gap { place: place.clone(), missing, seen };
                data.gaps.insert((place.clone(), missing.range.from()), gap);
            }
        }
        Ok(())
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, StoreError> {
        Ok(page(&self.data().gaps, after, limit, |((place, _), gap)| {
            let is_of = of.series.as_ref().is_none_or(|series| *series == place.series)
                && of.scope.as_ref().is_none_or(|scope| *scope == place.scope);
            is_of.then(|| gap.clone())
        }))
    }
}

impl Data {
    fn account(&self, asker: &MemoryStore, place: &Place, row: &ScopeRow, next: u64) -> Account {
        let mut account = Account {
            next,
            issued: row.issued.iter().collect(),
            lost: row.lost.clone(),
            aside_to: row.adopted.last().map_or(0, |last| last + 1),
            gapless_from: row.gapless_from,
            ..Account::default()
        };
        self.add_clients(asker, place, &mut account);
        self.add_documents(place, &mut account);
        let elsewhere =
            Ranges::of(account.with_clients.iter().copied().chain(row.lost.iter().map(|lost| lost.range)));
        let (mut held, mut crashed) = (Vec::new(), Vec::new());
        for leased in &row.leased {
            if self.is_alive(leased.node, asker) { &mut held } else { &mut crashed }.push(leased.range);
        }
        for pooled in &row.pooled {
            let is_held = pooled.state == PoolState::Pushed || self.is_alive(pooled.holder, asker);
            if is_held { &mut held } else { &mut crashed }.push(pooled.range);
        }
        account.held = Ranges::of(held).without(&elsewhere).iter().collect();
        let crashed = Ranges::of(crashed).without(&elsewhere);
        account.lost.extend(Missing::all(crashed.iter(), Reason::CrashSkip));
        account
    }

    /// What clients have, and what those had that were silent for too long.
    fn add_clients(&self, asker: &MemoryStore, place: &Place, account: &mut Account) {
        let now = asker.runtime.now();
        for lease in self.client_leases.values().filter(|lease| lease.place == *place) {
            let is_silent = lease.at.checked_add(CLIENT_LEASE_SPAN).is_ok_and(|end| end <= now);
            let ranges = lease.ranges.iter().copied();
            if is_silent {
                account.lost.extend(Missing::all(ranges, Reason::CrashSkip));
            } else {
                account.with_clients.extend(ranges);
            }
        }
    }

    fn add_documents(&self, place: &Place, account: &mut Account) {
        for DocumentRow { document, .. } in self.documents.values().filter(|row| row.document.place == *place)
        {
            let Some(range) = Lease::new(document.position, document.position + 1) else { continue };
            let reason = match document.state {
                State::Pending | State::Reserved => {
                    account.pending.push(range);
                    continue;
                }
                State::Voided => Reason::Voided,
                State::Dead | State::Abandoned if document.in_doubt => Reason::DeliveryUnknown,
                State::Dead => Reason::OutboxDlq,
                State::Abandoned => Reason::Abandoned,
                State::Delivered | State::Confirmed => continue,
            };
            account.undelivered.push(Missing { range, reason });
        }
    }
}

//! What a store in memory knows of positions, and the gaps that were found in it.

use bates_core::ledger::PoolState;
use bates_core::{
    CLIENT_LEASE_SPAN, Gap, GapFilter, GapStore, KnownFor, KnownRange, KnownScope, Lease, Missing, Place,
    RangeKind, ScopeKey, SeriesName, StoreResult,
};

use super::scope::ScopeRow;
use super::{Data, MemoryStore, page};

impl GapStore for MemoryStore {
    async fn known(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: KnownFor,
    ) -> StoreResult<Vec<KnownScope>> {
        let data = self.data();
        let after = after.map(|scope| Place { series: series.clone(), scope });
        Ok(page(&data.scopes, after, limit, |(place, row)| {
            Some(KnownScope {
                scope: place.scope.clone(),
                cursor: row.cursor.filter(|_| place.series == series)?,
                aside_to: row.adopted.last().map_or(0, |last| last.value() + 1),
                gapless_from: row.gapless_from,
                ranges: data.ranges(self, place, row, purpose),
            })
        }))
    }

    async fn put_gaps(&self, series: SeriesName, scopes: Vec<(ScopeKey, Vec<Missing>)>) -> StoreResult<()> {
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

    async fn gaps(&self, of: GapFilter, after: Option<(Place, u64)>, limit: usize) -> StoreResult<Vec<Gap>> {
        Ok(page(&self.data().gaps, after, limit, |((place, _), gap)| {
            let is_of = of.series.as_ref().is_none_or(|series| *series == place.series)
                && of.scope.as_ref().is_none_or(|scope| *scope == place.scope);
            is_of.then(|| gap.clone())
        }))
    }
}

impl Data {
    fn ranges(
        &self,
        asker: &MemoryStore,
        place: &Place,
        row: &ScopeRow,
        purpose: KnownFor,
    ) -> Vec<KnownRange> {
        let known = |range, kind| KnownRange { range, kind };
        let mut ranges: Vec<_> = row.issued.iter().map(|range| known(range, RangeKind::Issued)).collect();
        ranges.extend(row.lost.iter().map(|lost| known(lost.range, RangeKind::Lost(lost.reason))));
        for leased in &row.leased {
            let is_alive = self.is_alive(leased.node, asker);
            ranges.push(known(leased.range, if is_alive { RangeKind::Held } else { RangeKind::Crashed }));
        }
        for pooled in &row.pooled {
            let kind = match (pooled.state, self.is_alive(pooled.holder, asker)) {
                (PoolState::Pushed, _) => RangeKind::Pushed,
                (_, true) => RangeKind::Filling,
                (_, false) => RangeKind::FillerCrashed,
            };
            ranges.push(known(pooled.range, kind));
        }
        let now = asker.runtime.now();
        for lease in self.client_leases.values().filter(|lease| lease.place == *place) {
            let is_silent = lease.at.checked_add(CLIENT_LEASE_SPAN).is_ok_and(|end| end <= now);
            let kind = if is_silent { RangeKind::ClientSilent } else { RangeKind::WithClient };
            ranges.extend(lease.ranges.iter().map(|range| known(*range, kind)));
        }
        if purpose == KnownFor::Account {
            let documents = self.documents.values().map(|row| &row.document);
            ranges.extend(documents.filter(|document| document.place == *place).map(|document| {
                let kind = if document.in_doubt { RangeKind::InDoubt } else { RangeKind::Document };
                known(Lease::one(document.position), kind(document.state))
            }));
        }
        ranges
    }
}

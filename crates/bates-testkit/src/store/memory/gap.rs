//! The gaps of a store in memory, and the ranges that it knows about.

use bates_core::ledger::PooledState;
use bates_core::{
    CLIENT_LEASE_TTL, Gap, GapFilter, GapStore, MissingRange, PositionRange, RangeKind, RangeRecord,
    ReadPurpose, ScopeId, ScopeKey, ScopeRecord, SeriesName, StoreResult,
};

use jiff::Timestamp;

use super::scope::ScopeRow;
use super::{Data, MemoryStore, page};

impl GapStore for MemoryStore {
    async fn scope_records(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: ReadPurpose,
    ) -> StoreResult<Vec<ScopeRecord>> {
        let data = self.data();
        let after = after.map(|scope| ScopeId { series: series.clone(), scope });
        Ok(page(&data.scopes, after, limit, |(scope_id, row)| {
            Some(ScopeRecord {
                scope: scope_id.scope.clone(),
                cursor: row.cursor.filter(|_| scope_id.series == series)?,
                adopted_to: row.adopted.last().map_or(0, |last| last.value() + 1),
                gapless_from: row.gapless_from,
                ranges: data.ranges(self, scope_id, row, purpose),
            })
        }))
    }

    async fn replace_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<MissingRange>)>,
    ) -> StoreResult<()> {
        let (now, mut data) = (self.runtime.now(), self.data());
        data.series(&series)?;
        for (scope, missing) in scopes {
            let scope_id = ScopeId { series: series.clone(), scope };
            let before: Vec<Gap> =
                data.gaps.extract_if(.., |(at, _), _| *at == scope_id).map(|(_, gap)| gap).collect();
            for missing in missing {
                let is_same = |gap: &&Gap| {
                    gap.missing.range.from() == missing.range.from() && gap.missing.reason == missing.reason
                };
                let first_seen = before.iter().find(is_same).map_or(now, |gap| gap.first_seen);
                let gap = Gap { scope_id: scope_id.clone(), missing, first_seen };
                data.gaps.insert((scope_id.clone(), missing.range.from()), gap);
            }
        }
        Ok(())
    }

    async fn set_reconciled(&self, series: SeriesName, at: Timestamp) -> StoreResult<()> {
        self.data().series_mut(&series)?.reconciled_at = Some(at);
        Ok(())
    }

    async fn reconciled(&self) -> StoreResult<Vec<(SeriesName, Timestamp)>> {
        let data = self.data();
        Ok(data.series.iter().filter_map(|(name, row)| Some((name.clone(), row.reconciled_at?))).collect())
    }

    async fn gaps(
        &self,
        filter: GapFilter,
        after: Option<(ScopeId, u64)>,
        limit: usize,
    ) -> StoreResult<Vec<Gap>> {
        Ok(page(&self.data().gaps, after, limit, |((scope_id, _), gap)| {
            let is_match = filter.among.contains(&scope_id.series)
                && filter.series.as_ref().is_none_or(|series| *series == scope_id.series)
                && filter.scope.as_ref().is_none_or(|scope| scope.matches(&scope_id.scope));
            is_match.then(|| gap.clone())
        }))
    }
}

impl Data {
    fn ranges(
        &self,
        process: &MemoryStore,
        scope_id: &ScopeId,
        row: &ScopeRow,
        purpose: ReadPurpose,
    ) -> Vec<RangeRecord> {
        let known = |range, kind| RangeRecord { range, kind };
        let mut ranges: Vec<_> = row.issued.iter().map(|range| known(range, RangeKind::Issued)).collect();
        ranges.extend(row.lost.iter().map(|lost| known(lost.range, RangeKind::Lost(lost.reason))));
        for leased in &row.leased {
            let is_alive = self.is_alive(leased.node, process);
            ranges.push(known(leased.range, if is_alive { RangeKind::Held } else { RangeKind::Crashed }));
        }
        for pooled in &row.pooled {
            let kind = match (pooled.state, self.is_alive(pooled.holder, process)) {
                (PooledState::Pushed, _) => RangeKind::Pushed,
                (_, true) => RangeKind::Filling,
                (_, false) => RangeKind::FillerCrashed,
            };
            ranges.push(known(pooled.range, kind));
        }
        let now = process.runtime.now();
        for lease in self.client_leases.values().filter(|lease| lease.scope_id == *scope_id) {
            let is_silent = lease.at.checked_add(CLIENT_LEASE_TTL).is_ok_and(|end| end <= now);
            let kind = if is_silent { RangeKind::ClientSilent } else { RangeKind::WithClient };
            ranges.extend(lease.ranges.iter().map(|range| known(*range, kind)));
        }
        if purpose == ReadPurpose::Reconcile {
            let documents = self.documents.values().map(|row| &row.document);
            ranges.extend(documents.filter(|document| document.scope_id == *scope_id).map(|document| {
                let kind = if document.in_doubt { RangeKind::InDoubt } else { RangeKind::Document };
                known(PositionRange::one(document.position), kind(document.state))
            }));
        }
        ranges
    }
}

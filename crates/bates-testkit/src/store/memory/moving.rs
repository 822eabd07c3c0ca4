//! Moving a store in memory.

use bates_core::ledger::{Key, PoolState};
use bates_core::{
    Adopted, Assigned, Gap, Idempotency, Kept, Mark, Missing, MoveStore, Page, Pinning, Place, Pool, Ranges,
    Reason, Record, Request, ScopeKey, SeriesName, SetAside, StoreError,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::document::{DocumentRow, KeyRow};
use super::scope::ScopeRow;
use super::{Data, MemoryStore, page};

impl MoveStore for MemoryStore {
    async fn definitions(&self) -> Result<Vec<Pinning>, StoreError> {
        let data = self.data();
        Ok(data.series.values().map(|row| (row.definition.clone(), row.permutation_key.clone())).collect())
    }

    async fn leaving(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<Adopted>, StoreError> {
        let data = self.data();
        let after = after.map(|scope| Place { series: series.clone(), scope });
        Ok(page(&data.scopes, after, limit, |(place, row)| {
            let cursor = row.cursor.filter(|_| place.series == series)?;
            let (ledger, lost) = (row.issued.iter().collect(), data.left_behind(place, row));
            Some(Adopted { scope: place.scope.clone(), cursor, ledger, lost, gapless_from: row.gapless_from })
        }))
    }

    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, u64)>,
        limit: usize,
    ) -> Result<Vec<SetAside>, StoreError> {
        let data = self.data();
        let scopes = data.scopes.iter().filter(|(place, _)| place.series == series);
        let positions = scopes.flat_map(|(place, row)| row.adopted.iter().map(|at| (&place.scope, *at)));
        let is_behind = |(scope, at): &(&ScopeKey, u64)| {
            after.as_ref().is_none_or(|(last, position)| (*scope, at) > (last, position))
        };
        let mut page = Vec::new();
        for (scope, position) in positions.filter(is_behind).take(limit) {
            SetAside::add(&mut page, scope.as_str(), position);
        }
        Ok(page)
    }

    async fn kept(&self, after: Option<Uuid>, limit: usize, bytes: usize) -> Result<Vec<Kept>, StoreError> {
        let mut read = 0;
        Ok(page(&self.data().documents, after, limit, |(_, row)| {
            if read >= bytes.max(1) {
                return None;
            }
            read += row.body.as_ref().map_or(0, |body| body.len());
            let mut document = row.document.clone();
            if row.is_claimed {
                (document.due, document.in_doubt) = (Some(Timestamp::UNIX_EPOCH), true);
            }
            Some(Kept { document, body: row.body.clone() })
        }))
    }

    async fn requests(&self, after: Option<Request>, limit: usize) -> Result<Vec<Request>, StoreError> {
        let after = after.as_ref().map(key_of);
        Ok(page(&self.data().keys, after, limit, |(key, row)| {
            let KeyRow { digest, assigned, scope, pruned_as } = row;
            let (caller, text) = (key.caller.clone(), key.text.clone());
            Some(Request {
                place: Place { series: key.series.clone(), scope: scope.clone() },
                idempotency: Idempotency { caller, key: text, digest: *digest },
                event: assigned.event,
                position: assigned.position,
                number: assigned.number.clone(),
                pruned_as: *pruned_as,
            })
        }))
    }

    async fn adopt(&self, run: Uuid, page: Page) -> Result<bool, StoreError> {
        // A write takes time: a caller may give up before it begins.
        tokio::task::yield_now().await;
        let mut data = self.data();
        match &data.mark {
            Some(Mark::Arriving(arriving)) if arriving.run == run => data.write(page).map(|()| true),
            _ => Ok(false),
        }
    }

    async fn marked(&self) -> Result<Option<Mark>, StoreError> {
        Ok(self.data().mark.clone())
    }

    async fn mark(&self, expected: Option<Mark>, mark: Option<Mark>) -> Result<bool, StoreError> {
        let mut data = self.data();
        if data.mark == mark {
            return Ok(true);
        }
        let begins = data.mark.is_none() && matches!(mark, Some(Mark::Arriving(_)));
        if data.mark != expected || begins && !data.series.is_empty() {
            return Ok(false);
        }
        data.mark = mark;
        Ok(true)
    }
}

fn key_of(Request { place, idempotency, .. }: &Request) -> Key {
    let Idempotency { caller, key, .. } = idempotency;
    Key { caller: caller.clone(), series: place.series.clone(), text: key.clone() }
}

impl Data {
    /// What is lost, and what processes and pools hold: some of it may have been handed out.
    fn left_behind(&self, place: &Place, row: &ScopeRow) -> Vec<Missing> {
        let mut lost = row.lost.clone();
        for pooled in &row.pooled {
            let reason =
                if pooled.state == PoolState::Pushed { Reason::PoolInvalidated } else { Reason::CrashSkip };
            lost.push(Missing { range: pooled.range, reason });
        }
        let with_clients = self.client_leases.values().filter(|lease| lease.place == *place);
        let with_clients = Ranges::of(with_clients.flat_map(|lease| lease.ranges.iter().copied()));
        let held = Ranges::of(row.leased.iter().map(|leased| leased.range)).without(&with_clients);
        lost.extend(Missing::all(held.iter(), Reason::CrashSkip));
        Missing::each_once(&lost)
    }

    fn write(&mut self, page: Page) -> Result<(), StoreError> {
        match page {
            Page::Identity(id) => self.identity = id,
            Page::Definition(definition, key) => drop(self.pin(definition, key)?),
            Page::Scopes(series, scopes) => self.write_scopes(&series, scopes),
            Page::Aside(series, scopes) => self.write_adopted(&series, scopes),
            Page::Pools(series, pools) => {
                let place = |scope| Place { series: series.clone(), scope };
                let pool = |epoch| Pool { epoch, server: None };
                self.pools.extend(pools.into_iter().map(|(scope, epoch)| (place(scope), pool(epoch))));
            }
            Page::Documents(kept) => {
                let row = |Kept { document, body }| DocumentRow { document, body, is_claimed: false };
                self.documents.extend(kept.into_iter().map(row).map(|row| (row.document.event, row)));
            }
            Page::Requests(requests) => self.keys.extend(requests.iter().map(key_row)),
            Page::Gaps(gaps) => {
                let key = |gap: &Gap| (gap.place.clone(), gap.missing.range.from());
                self.gaps.extend(gaps.into_iter().map(|gap| (key(&gap), gap)));
            }
            Page::Records(records) => {
                let key = |record: &Record| (record.taking.at, record.id);
                self.records.extend(records.into_iter().map(|record| (key(&record), record)));
            }
            Page::ClientLeases(leases) => {
                self.client_leases.extend(leases.into_iter().map(|lease| (lease.id, lease)));
            }
            Page::Descriptions(descriptions) => {
                self.revision += 1;
                for (series, description) in descriptions {
                    self.series_mut(&series)?.description = Some(description);
                }
            }
        }
        Ok(())
    }

    fn write_adopted(&mut self, series: &SeriesName, scopes: Vec<SetAside>) {
        for SetAside { scope, positions } in scopes {
            let place = Place { series: series.clone(), scope };
            self.scopes.entry(place).or_default().adopted.extend(positions);
        }
    }

    fn write_scopes(&mut self, series: &SeriesName, scopes: Vec<Adopted>) {
        for Adopted { scope, mut cursor, ledger, lost, gapless_from } in scopes {
            let row = self.scopes.entry(Place { series: series.clone(), scope }).or_default();
            if let Some(here) = row.cursor {
                (cursor.next, cursor.version) =
                    (cursor.next.max(here.next), cursor.version.max(here.version));
            }
            (row.cursor, row.gapless_from) = (Some(cursor), gapless_from);
            (row.issued, row.lost) = (Ranges::of(ledger), lost);
        }
    }
}

fn key_row(request: &Request) -> (Key, KeyRow) {
    let Request { place, idempotency, event, position, number, pruned_as } = request;
    let assigned = Assigned {
        event: *event,
        position: *position,
        number: number.clone(),
        state: *pruned_as,
        is_new: false,
    };
    let (digest, scope) = (idempotency.digest, place.scope.clone());
    (key_of(request), KeyRow { digest, assigned, scope, pruned_as: *pruned_as })
}

//! Moving a store in memory.

use bates_core::ledger::Key;
use bates_core::{
    Adopted, Assigned, Gap, Idempotency, Kept, Mark, MarkChange, MoveStore, Page, Pinning, Place, Pool,
    Position, Ranges, Record, Request, ScopeKey, SeriesName, SetAside, StoreError,
};
use uuid::Uuid;

use super::document::{DocumentRow, KeyRow};
use super::{Data, MemoryStore, page};

impl MoveStore for MemoryStore {
    async fn definitions(&self) -> Result<Vec<Pinning>, StoreError> {
        let data = self.data();
        Ok(data.series.values().map(|row| (row.definition.clone(), row.permutation_key.clone())).collect())
    }

    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> Result<Vec<SetAside>, StoreError> {
        let data = self.data();
        let scopes = data.scopes.iter().filter(|(place, _)| place.series == series);
        let positions = scopes.flat_map(|(place, row)| row.adopted.iter().map(|at| (&place.scope, *at)));
        let is_behind = |(scope, at): &(&ScopeKey, Position)| {
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
            Some(Kept::leaving(row.document.clone(), row.body.clone(), row.is_claimed))
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
            Some(mark) if mark.takes_pages_of(run) => data.write(page).map(|()| true),
            _ => Ok(false),
        }
    }

    async fn marked(&self) -> Result<Option<Mark>, StoreError> {
        Ok(self.data().mark.clone())
    }

    async fn mark(&self, expected: Option<Mark>, mark: Option<Mark>) -> Result<bool, StoreError> {
        let mut data = self.data();
        let has_series = !data.series.is_empty();
        let change = Mark::change(data.mark.as_ref(), expected.as_ref(), mark.as_ref(), has_series);
        if change == MarkChange::Write {
            data.mark = mark;
        }
        Ok(change != MarkChange::Refused)
    }
}

fn key_of(Request { place, idempotency, .. }: &Request) -> Key {
    let Idempotency { caller, key, .. } = idempotency;
    Key { caller: caller.clone(), series: place.series.clone(), text: key.clone() }
}

impl Data {
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

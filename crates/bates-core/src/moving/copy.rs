//! Copies everything of the old store, page by page.

use uuid::Uuid;

use super::{MoveError, Moved, Page, SetAside};
use crate::audit::RecordFilter;
use crate::gap::{Gap, GapFilter};
use crate::lease::ClientLeaseFilter;
use crate::pool::Pool;
use crate::scope::ScopeKey;
use crate::series::SeriesName;
use crate::store::{Store, StoreError};

/// Scopes, documents, keys, gaps, pools, records or client leases that are copied in one commit.
const PAGE_MAX: usize = 1_000;

/// Adopted positions that are copied in one commit: there may be millions, and each is one integer.
const ASIDE_MAX: usize = 10_000;

/// A page of documents ends when their bodies reach 1 MiB. A body has up to 1 MiB, so a page has less than 2.
const PAGE_BYTES: usize = 1 << 20;

pub(super) struct Copying<'m, A, B> {
    pub(super) from: &'m A,
    pub(super) to: &'m B,
    pub(super) to_name: &'m str,
    pub(super) run: Uuid,
    pub(super) moved: Moved,
    pub(super) progress: &'m mut dyn FnMut(Moved),
}

impl<A: Store, B: Store> Copying<'_, A, B> {
    pub(super) async fn series(&mut self, series: &SeriesName) -> Result<(), MoveError> {
        let from = self.from;
        let scopes = async |after| from.leaving(series.clone(), after, PAGE_MAX).await;
        let page = |page| Page::Scopes(series.clone(), page);
        self.pages(scopes, |last| Some(last.scope.clone()), page).await?;
        // After the scopes: the cursor of each scope says where its adopted positions end.
        let aside = async |after| from.all_aside(series.clone(), after, ASIDE_MAX).await;
        let last = |last: &SetAside| Some((last.scope.clone(), *last.positions.last()?));
        self.pages(aside, last, |page| Page::Aside(series.clone(), page)).await?;
        // Without their servers: what a pool holds is lost, and the new store renews it.
        let pools = async |after| from.pools(series.clone(), after, PAGE_MAX).await;
        let page = |page: Vec<(ScopeKey, Pool)>| {
            let epochs = page.into_iter().map(|(scope, pool)| (scope, pool.epoch)).collect();
            Page::Pools(series.clone(), epochs)
        };
        self.pages(pools, |(last, _)| Some(last.clone()), page).await?;
        self.moved.series += 1;
        Ok(())
    }

    pub(super) async fn documents(&mut self) -> Result<(), MoveError> {
        let from = self.from;
        let kept = async |after| from.kept(after, PAGE_MAX, PAGE_BYTES).await;
        self.pages(kept, |last| Some(last.document.event), Page::Documents).await?;
        let requests = async |after| from.requests(after, PAGE_MAX).await;
        self.pages(requests, |last| Some(last.clone()), Page::Requests).await
    }

    pub(super) async fn accounts(&mut self) -> Result<(), MoveError> {
        let from = self.from;
        let gaps = async |after| from.gaps(GapFilter::default(), after, PAGE_MAX).await;
        let last = |last: &Gap| Some((last.place.clone(), last.missing.range.from()));
        self.pages(gaps, last, Page::Gaps).await?;
        let records = async |after| from.records(RecordFilter::default(), after, PAGE_MAX).await;
        self.pages(records, |last| Some((last.taking.at, last.id)), Page::Records).await?;
        let leases = async |after| from.client_leases(ClientLeaseFilter::default(), after, PAGE_MAX).await;
        self.pages(leases, |last| Some(last.id), Page::ClientLeases).await
    }

    async fn pages<K, T>(
        &mut self,
        read: impl AsyncFn(Option<K>) -> Result<Vec<T>, StoreError>,
        key: impl Fn(&T) -> Option<K>,
        page: impl Fn(Vec<T>) -> Page,
    ) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let found = read(after).await?;
            let Some(last) = found.last() else { return Ok(()) };
            after = key(last);
            self.write(page(found)).await?;
        }
    }

    pub(super) async fn write(&mut self, page: Page) -> Result<(), MoveError> {
        match &page {
            Page::Scopes(_, scopes) => self.moved.scopes += scopes.len() as u64,
            Page::Documents(kept) => self.moved.documents += kept.len() as u64,
            Page::Requests(requests) => self.moved.keys += requests.len() as u64,
            Page::Records(records) => self.moved.records += records.len() as u64,
            _ => {}
        }
        if !self.to.adopt(self.run, page).await? {
            return Err(MoveError::Overtaken(self.to_name.into()));
        }
        (self.progress)(self.moved);
        Ok(())
    }
}

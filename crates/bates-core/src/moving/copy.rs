//! Everything of the old store, copied page by page in its order.

use uuid::Uuid;

use super::{MoveError, Moved, Page};
use crate::audit::RecordFilter;
use crate::gap::GapFilter;
use crate::lease::ClientLeaseFilter;
use crate::series::SeriesName;
use crate::store::Store;

/// Scopes, documents, keys, gaps, pools, records or client leases that are copied in one commit.
const PAGE_MAX: usize = 1_000;

/// Adopted positions that are copied in one commit: there may be millions, and each is one integer.
const ASIDE_MAX: usize = 10_000;

/// A page of documents ends when their bodies reach this size. A body has up to a mebibyte, so a page has less than two.
const PAGE_BYTES: usize = 1 << 20;

/// A move under way: each kind page by page, in the order of the old store.
pub(super) struct Copying<'m, A, B> {
    pub(super) from: &'m A,
    pub(super) to: &'m B,
    pub(super) to_name: &'m str,
    pub(super) run: Uuid,
    pub(super) moved: Moved,
    pub(super) progress: &'m mut dyn FnMut(Moved),
}

impl<A: Store, B: Store> Copying<'_, A, B> {
    pub(super) async fn scopes(&mut self, series: &SeriesName) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.leaving(series.clone(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.scope.clone());
            self.moved.scopes += page.len() as u64;
            self.write(Page::Scopes(series.clone(), page)).await?;
        }
    }

    /// Behind the scopes: each of them has a cursor by then, which is told where they end.
    pub(super) async fn aside(&mut self, series: &SeriesName) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.all_aside(series.clone(), after, ASIDE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.positions.last().map(|position| (last.scope.clone(), *position));
            self.write(Page::Aside(series.clone(), page)).await?;
        }
    }

    /// Without their servers: what a list holds is lost, and the new store begins it anew.
    pub(super) async fn pools(&mut self, series: &SeriesName) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.pools(series.clone(), after, PAGE_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            let epochs = page.into_iter().map(|(scope, pool)| (scope, pool.epoch)).collect();
            self.write(Page::Pools(series.clone(), epochs)).await?;
        }
    }

    pub(super) async fn documents(&mut self) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.kept(after, PAGE_MAX, PAGE_BYTES).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.document.event);
            self.moved.documents += page.len() as u64;
            self.write(Page::Documents(page)).await?;
        }
    }

    pub(super) async fn requests(&mut self) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.requests(after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            self.moved.keys += page.len() as u64;
            self.write(Page::Requests(page)).await?;
        }
    }

    pub(super) async fn gaps(&mut self) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.gaps(GapFilter::default(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some((last.place.clone(), last.missing.range.from()));
            self.write(Page::Gaps(page)).await?;
        }
    }

    pub(super) async fn records(&mut self) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.records(RecordFilter::default(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some((last.taking.at, last.id));
            self.moved.records += page.len() as u64;
            self.write(Page::Records(page)).await?;
        }
    }

    pub(super) async fn client_leases(&mut self) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.from.client_leases(ClientLeaseFilter::default(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            self.write(Page::ClientLeases(page)).await?;
        }
    }

    pub(super) async fn write(&mut self, page: Page) -> Result<(), MoveError> {
        if !self.to.adopt(self.run, page).await? {
            return Err(MoveError::Overtaken(self.to_name.into()));
        }
        (self.progress)(self.moved);
        Ok(())
    }
}

//! Copies everything of the old store, page by page.

use uuid::Uuid;

use super::{MoveError, MovePage, MoveProgress, MovedAdoptions};
use crate::audit::AuditFilter;
use crate::gap::{Gap, GapFilter};
use crate::lease::ClientLeaseFilter;
use crate::pool::Pool;
use crate::scope::ScopeKey;
use crate::series::SeriesName;
use crate::store::{Store, StoreResult};

/// Scopes, documents, keys, gaps, pools, records or client leases that are copied in one commit.
const PAGE_MAX: usize = 1_000;

/// Adopted positions that are copied in one commit: there may be millions, and each is one integer.
const ADOPTED_PAGE_MAX: usize = 10_000;

/// A page of documents ends when their bodies reach 1 MiB. A body has up to 1 MiB, so a page has less than 2.
const PAGE_BYTES: usize = 1 << 20;

pub(super) struct StoreCopy<'m, A, B> {
    pub(super) from: &'m A,
    pub(super) to: &'m B,
    pub(super) to_name: &'m str,
    pub(super) run: Uuid,
    pub(super) done: MoveProgress,
    pub(super) progress: &'m mut dyn FnMut(MoveProgress),
}

impl<A: Store, B: Store> StoreCopy<'_, A, B> {
    pub(super) async fn series(&mut self, series: &SeriesName) -> Result<(), MoveError> {
        let from = self.from;
        let scopes = async |after| from.moved_scopes(series.clone(), after, PAGE_MAX).await;
        let page = |page| MovePage::Scopes(series.clone(), page);
        self.pages(scopes, |last| Some(last.scope.clone()), page).await?;
        // After the scopes: the cursor of each scope says where its adopted positions end.
        let adopted = async |after| from.moved_adoptions(series.clone(), after, ADOPTED_PAGE_MAX).await;
        let last = |last: &MovedAdoptions| Some((last.scope.clone(), *last.positions.last()?));
        self.pages(adopted, last, |page| MovePage::Adopted(series.clone(), page)).await?;
        // Without their servers: the content of each list is lost, and the new store renews the pool.
        let pools = async |after| from.pools(series.clone(), after, PAGE_MAX).await;
        let page = |page: Vec<(ScopeKey, Pool)>| {
            let epochs = page.into_iter().map(|(scope, pool)| (scope, pool.epoch)).collect();
            MovePage::Pools(series.clone(), epochs)
        };
        self.pages(pools, |(last, _)| Some(last.clone()), page).await?;
        self.done.series += 1;
        Ok(())
    }

    pub(super) async fn documents(&mut self) -> Result<(), MoveError> {
        let from = self.from;
        let documents = async |after| from.moved_documents(after, PAGE_MAX, PAGE_BYTES).await;
        self.pages(documents, |last| Some(last.document.id), MovePage::Documents).await?;
        let keys = async |after| from.moved_keys(after, PAGE_MAX).await;
        self.pages(keys, |last| Some(last.clone()), MovePage::Keys).await
    }

    pub(super) async fn gaps_and_records(&mut self) -> Result<(), MoveError> {
        let from = self.from;
        let gaps = async |after| from.gaps(GapFilter::default(), after, PAGE_MAX).await;
        let last = |last: &Gap| Some((last.scope_id.clone(), last.missing.range.from()));
        self.pages(gaps, last, MovePage::Gaps).await?;
        self.write(MovePage::Reconciled(from.reconciled().await?)).await?;
        let records = async |after| from.records(AuditFilter::default(), after, PAGE_MAX).await;
        self.pages(records, |last| Some((last.stamp.at, last.id)), MovePage::Records).await?;
        for head in from.chains().await? {
            let records = async |after: Option<u64>| {
                from.chain_records(head.chain.clone(), after.unwrap_or_default(), PAGE_MAX).await
            };
            self.pages(records, |last| Some(last.number), MovePage::Operations).await?;
            self.write(MovePage::Chains(vec![head])).await?;
        }
        self.write(MovePage::Tokens(from.tokens().await?)).await?;
        self.write(MovePage::Quotas(from.drawn_quotas().await?)).await?;
        let leases = async |after| from.client_leases(ClientLeaseFilter::default(), after, PAGE_MAX).await;
        self.pages(leases, |last| Some(last.id), MovePage::ClientLeases).await
    }

    async fn pages<K, T>(
        &mut self,
        read: impl AsyncFn(Option<K>) -> StoreResult<Vec<T>>,
        key: impl Fn(&T) -> Option<K>,
        page: impl Fn(Vec<T>) -> MovePage,
    ) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let found = read(after).await?;
            let Some(last) = found.last() else { return Ok(()) };
            after = key(last);
            self.write(page(found)).await?;
        }
    }

    pub(super) async fn write(&mut self, page: MovePage) -> Result<(), MoveError> {
        match &page {
            MovePage::Scopes(_, scopes) => self.done.scopes += scopes.len() as u64,
            MovePage::Documents(documents) => self.done.documents += documents.len() as u64,
            MovePage::Keys(keys) => self.done.keys += keys.len() as u64,
            MovePage::Records(records) => self.done.records += records.len() as u64,
            _ => {}
        }
        if !self.to.import_page(self.run, page).await? {
            return Err(MoveError::Overtaken(self.to_name.into()));
        }
        (self.progress)(self.done);
        Ok(())
    }
}

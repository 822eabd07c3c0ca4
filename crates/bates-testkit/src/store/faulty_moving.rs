//! A move into a store that fails on purpose: at a chosen page, before it is written or after. All else is passed on.

use bates_core::{
    Adopted, Kept, Mark, Movable, Page, Pinning, Request, ScopeKey, SeriesName, SetAside, StoreError,
};
use uuid::Uuid;

use super::{Fault, FaultyStore};

/// What a page that fails is answered with.
pub(super) const PLANNED: &str = "planned by a test";

impl<S: Movable> Movable for FaultyStore<S> {
    async fn definitions(&self) -> Result<Vec<Pinning>, StoreError> {
        self.inner.definitions().await
    }

    async fn leaving(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<Adopted>, StoreError> {
        self.inner.leaving(series, after, limit).await
    }

    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, u64)>,
        limit: usize,
    ) -> Result<Vec<SetAside>, StoreError> {
        self.inner.all_aside(series, after, limit).await
    }

    async fn kept(&self, after: Option<Uuid>, limit: usize, bytes: usize) -> Result<Vec<Kept>, StoreError> {
        self.inner.kept(after, limit, bytes).await
    }

    async fn requests(&self, after: Option<Request>, limit: usize) -> Result<Vec<Request>, StoreError> {
        self.inner.requests(after, limit).await
    }

    async fn adopt(&self, run: Uuid, page: Page) -> Result<bool, StoreError> {
        let failed = || StoreError::Unavailable(PLANNED.into());
        match self.next_fault() {
            Fault::None => self.inner.adopt(run, page).await,
            Fault::BeforeWrite => Err(failed()),
            Fault::AfterWrite => self.inner.adopt(run, page).await.and(Err(failed())),
        }
    }

    async fn marked(&self) -> Result<Option<Mark>, StoreError> {
        self.inner.marked().await
    }

    async fn mark(&self, expected: Option<Mark>, mark: Option<Mark>) -> Result<bool, StoreError> {
        self.inner.mark(expected, mark).await
    }
}

//! Documents, books and pools behind a store that fails on purpose: they are not failed, only passed on.

use std::time::Duration;

use bates_core::{
    Account, Assign, AssignError, Assigned, Books, Claim, Claimed, ClientLease, ClientLeaseFilter,
    ClientLeases, Decided, Decision, Document, Filter, Gap, GapFilter, Lease, LeaseEnd, Missing, Outbox,
    Place, Pool, Pools, Renewal, ScopeKey, SeriesName, Settlement, Settling, State, StoreError,
};
use uuid::Uuid;

use super::FaultyStore;

impl<S: Outbox> Outbox for FaultyStore<S> {
    async fn assign(&self, assign: Assign) -> Result<Assigned, AssignError> {
        self.inner.assign(assign).await
    }

    async fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        self.inner.documents(filter, after, limit).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn settle(&self, settled: Vec<Settlement>) -> Result<u64, StoreError> {
        self.inner.settle(settled).await
    }

    async fn decide(&self, event: Uuid, decision: Decision) -> Result<Decided, StoreError> {
        self.inner.decide(event, decision).await
    }

    async fn decide_all(&self, filter: Filter, decision: Decision) -> Result<u64, StoreError> {
        self.inner.decide_all(filter, decision).await
    }

    async fn expire(&self, limit: usize) -> Result<u64, StoreError> {
        self.inner.expire(limit).await
    }

    async fn prune(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner.prune(age, limit).await
    }

    async fn woken(&self, series: &SeriesName) {
        self.inner.woken(series).await;
    }

    fn is_told(&self) -> bool {
        self.inner.is_told()
    }

    async fn tally(&self) -> Result<Vec<(SeriesName, State, u64)>, StoreError> {
        self.inner.tally().await
    }
}

impl<S: Books> Books for FaultyStore<S> {
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Account)>, StoreError> {
        self.inner.accounts(series, after, limit).await
    }

    async fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> Result<(), StoreError> {
        self.inner.put_gaps(series, scopes).await
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, StoreError> {
        self.inner.gaps(of, after, limit).await
    }
}

impl<S: ClientLeases> ClientLeases for FaultyStore<S> {
    async fn put_client_lease(&self, lease: ClientLease, used: Vec<Uuid>) -> Result<(), StoreError> {
        self.inner.put_client_lease(lease, used).await
    }

    async fn end_client_lease(&self, id: Uuid, unused: Vec<Lease>) -> Result<LeaseEnd, StoreError> {
        self.inner.end_client_lease(id, unused).await
    }

    async fn client_leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<ClientLease>, StoreError> {
        self.inner.client_leases(of, after, limit).await
    }
}

impl<S: Pools> Pools for FaultyStore<S> {
    async fn pool(&self, place: Place) -> Result<Pool, StoreError> {
        self.inner.pool(place).await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Pool)>, StoreError> {
        self.inner.pools(series, after, limit).await
    }

    async fn renew_pool(&self, place: Place, renewal: Renewal) -> Result<Option<Pool>, StoreError> {
        self.inner.renew_pool(place, renewal).await
    }

    async fn settle_pool(&self, place: Place, settling: Settling) -> Result<(), StoreError> {
        self.inner.settle_pool(place, settling).await
    }
}

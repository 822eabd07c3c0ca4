//! A store behind a pointer, which is the store itself. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::audit::{Audit, Record, RecordFilter};
use crate::client_lease::{ClientLease, ClientLeaseFilter, ClientLeases, LeaseEnd};
use crate::document::{
    Assign, AssignError, Assigned, Claim, Claimed, Decided, Decision, Document, Filter, Outbox, Settlement,
    State,
};
use crate::gap::{Account, Books, Gap, GapFilter, Missing};
use crate::grant::{Grant, GrantError, Surrendered, Tail, Want};
use crate::lease::Lease;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::pool::{Pool, Pools, Renewal, Settling};
use crate::promise::Promise;
use crate::recall::{Holder, Recall};
use crate::store::{Cursor, Definition, Pinned, Redescription, Store, StoreError};

impl<S: Audit> Audit for Arc<S> {
    async fn record(&self, records: Vec<Record>) -> Result<(), StoreError> {
        (**self).record(records).await
    }

    async fn records(
        &self,
        of: RecordFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        (**self).records(of, after, limit).await
    }

    async fn prune_records(
        &self,
        series: SeriesName,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        (**self).prune_records(series, before, limit).await
    }
}

impl<S: Outbox> Outbox for Arc<S> {
    async fn assign(&self, assign: Assign) -> Result<Assigned, AssignError> {
        (**self).assign(assign).await
    }

    async fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        (**self).documents(filter, after, limit).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        (**self).claim(claim).await
    }

    async fn settle(&self, settled: Vec<Settlement>) -> Result<u64, StoreError> {
        (**self).settle(settled).await
    }

    async fn decide(&self, event: Uuid, decision: Decision) -> Result<Decided, StoreError> {
        (**self).decide(event, decision).await
    }

    async fn decide_all(&self, filter: Filter, decision: Decision) -> Result<u64, StoreError> {
        (**self).decide_all(filter, decision).await
    }

    async fn expire(&self, limit: usize) -> Result<u64, StoreError> {
        (**self).expire(limit).await
    }

    async fn prune(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        (**self).prune(age, limit).await
    }

    async fn woken(&self, series: &SeriesName) {
        (**self).woken(series).await;
    }

    fn is_told(&self) -> bool {
        (**self).is_told()
    }

    async fn tally(&self) -> Result<Vec<(SeriesName, State, u64)>, StoreError> {
        (**self).tally().await
    }
}

impl<S: Books> Books for Arc<S> {
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Account)>, StoreError> {
        (**self).accounts(series, after, limit).await
    }

    async fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> Result<(), StoreError> {
        (**self).put_gaps(series, scopes).await
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, StoreError> {
        (**self).gaps(of, after, limit).await
    }
}

impl<S: ClientLeases> ClientLeases for Arc<S> {
    async fn put_client_lease(&self, lease: ClientLease, used: Vec<Uuid>) -> Result<(), StoreError> {
        (**self).put_client_lease(lease, used).await
    }

    async fn end_client_lease(&self, id: Uuid, unused: Vec<Lease>) -> Result<LeaseEnd, StoreError> {
        (**self).end_client_lease(id, unused).await
    }

    async fn client_leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<ClientLease>, StoreError> {
        (**self).client_leases(of, after, limit).await
    }
}

impl<S: Pools> Pools for Arc<S> {
    async fn pool(&self, place: Place) -> Result<Pool, StoreError> {
        (**self).pool(place).await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Pool)>, StoreError> {
        (**self).pools(series, after, limit).await
    }

    async fn renew_pool(&self, place: Place, renewal: Renewal) -> Result<Option<Pool>, StoreError> {
        (**self).renew_pool(place, renewal).await
    }

    async fn settle_pool(&self, place: Place, settling: Settling) -> Result<(), StoreError> {
        (**self).settle_pool(place, settling).await
    }
}

impl<S: Store> Store for Arc<S> {
    fn identity(&self) -> Uuid {
        (**self).identity()
    }

    fn is_shared(&self) -> bool {
        (**self).is_shared()
    }

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> Result<Pinned, StoreError> {
        (**self).pin(definition, fresh_key).await
    }

    async fn grant(&self, want: Want) -> Result<Grant, GrantError> {
        (**self).grant(want).await
    }

    async fn surrender(&self, tail: Tail) -> Result<Surrendered, StoreError> {
        (**self).surrender(tail).await
    }

    async fn cursor(&self, place: Place) -> Result<Option<Cursor>, StoreError> {
        (**self).cursor(place).await
    }

    async fn raise_floor(&self, place: Place, floor: u64) -> Result<Cursor, StoreError> {
        (**self).raise_floor(place, floor).await
    }

    async fn set_aside(&self, place: Place, positions: Vec<u64>) -> Result<u64, StoreError> {
        (**self).set_aside(place, positions).await
    }

    async fn aside(&self, place: Place, from: u64, limit: usize) -> Result<Vec<u64>, StoreError> {
        (**self).aside(place, from, limit).await
    }

    async fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Cursor)>, StoreError> {
        (**self).scopes(series, after, limit).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        (**self).probe().await
    }

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        (**self).describe(series, before, description).await
    }

    async fn watch(&self) -> Result<u64, StoreError> {
        (**self).watch().await
    }

    fn era(&self) -> u64 {
        (**self).era()
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        from: Promise,
        to: Promise,
        described: Option<Redescription>,
    ) -> Result<bool, StoreError> {
        (**self).change_promise(series, from, to, described).await
    }

    async fn promises(&self) -> Result<Vec<(SeriesName, Promise)>, StoreError> {
        (**self).promises().await
    }

    async fn recall(&self, series: SeriesName) -> Result<u64, StoreError> {
        (**self).recall(series).await
    }

    async fn recalls(&self) -> Result<Vec<Recall>, StoreError> {
        (**self).recalls().await
    }

    async fn give_up(
        &self,
        series: SeriesName,
        epoch: Option<u64>,
        unused: Vec<(ScopeKey, Lease)>,
    ) -> Result<(), StoreError> {
        (**self).give_up(series, epoch, unused).await
    }

    async fn burn(&self, burned: Vec<(Place, Lease)>) -> Result<(), StoreError> {
        (**self).burn(burned).await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        (**self).leave().await
    }

    async fn holders(&self, series: SeriesName, epoch: u64) -> Result<Vec<Holder>, StoreError> {
        (**self).holders(series, epoch).await
    }

    async fn write_off(&self, series: SeriesName, epoch: u64, nodes: Vec<Uuid>) -> Result<(), StoreError> {
        (**self).write_off(series, epoch, nodes).await
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        (**self).descriptions().await
    }

    async fn ledger(&self, place: Place) -> Result<Vec<Lease>, StoreError> {
        (**self).ledger(place).await
    }
}

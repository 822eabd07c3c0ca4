//! The leases of clients in a store in memory.

use bates_core::{
    ClientLease, ClientLeaseFilter, LeaseEnd, LeaseOwner, LeaseStore, PositionRange, StoreError, UsedLeases,
};
use uuid::Uuid;

use super::{MemoryStore, page};

impl LeaseStore for MemoryStore {
    async fn put_client_lease(&self, lease: ClientLease, used: UsedLeases) -> Result<(), StoreError> {
        let mut data = self.data();
        data.series(&lease.scope_id.series)?;
        data.client_leases.retain(|id, other| {
            !used.ids.contains(id) || other.scope_id != lease.scope_id || !used.owner.owns(other)
        });
        data.client_leases.entry(lease.id).or_insert(lease);
        Ok(())
    }

    async fn end_client_lease(
        &self,
        id: Uuid,
        unused: Vec<PositionRange>,
        owner: LeaseOwner,
    ) -> Result<LeaseEnd, StoreError> {
        let mut data = self.data();
        let ended = LeaseEnd::decide(data.client_leases.get(&id).cloned(), &unused, &owner);
        if let Some((scope_id, missing)) = ended.missing() {
            data.client_leases.remove(&id);
            data.scopes.entry(scope_id.clone()).or_default().lose(missing);
        }
        Ok(ended)
    }

    async fn client_leases(
        &self,
        filter: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<ClientLease>, StoreError> {
        Ok(page(&self.data().client_leases, after, limit, |(_, lease)| {
            let of = &lease.scope_id.series;
            let is_match =
                filter.among.contains(of) && filter.series.as_ref().is_none_or(|series| series == of);
            is_match.then(|| lease.clone())
        }))
    }
}

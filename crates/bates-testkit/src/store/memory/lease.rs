//! The leases of clients in a store in memory.

use bates_core::{ClientLease, ClientLeaseFilter, LeaseEnd, LeaseStore, PositionRange, StoreError};
use uuid::Uuid;

use super::{MemoryStore, page};

impl LeaseStore for MemoryStore {
    async fn put_client_lease(&self, lease: ClientLease, used: Vec<Uuid>) -> Result<(), StoreError> {
        let mut data = self.data();
        data.series(&lease.scope_id.series)?;
        data.client_leases.retain(|id, other| !used.contains(id) || other.scope_id != lease.scope_id);
        data.client_leases.entry(lease.id).or_insert(lease);
        Ok(())
    }

    async fn end_client_lease(&self, id: Uuid, unused: Vec<PositionRange>) -> Result<LeaseEnd, StoreError> {
        let mut data = self.data();
        let ended = LeaseEnd::decide(data.client_leases.get(&id).cloned(), &unused);
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
            filter
                .series
                .as_ref()
                .is_none_or(|series| *series == lease.scope_id.series)
                .then(|| lease.clone())
        }))
    }
}

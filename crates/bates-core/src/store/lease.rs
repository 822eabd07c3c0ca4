//! The leases of clients in a store.

use uuid::Uuid;

use super::StoreResult;
use crate::lease::{ClientLease, ClientLeaseFilter, LeaseEnd};
use crate::range::Lease;

/// Keeps leases of clients.
#[trait_variant::make(Send)]
pub trait LeaseStore: Send + Sync + 'static {
    /// Writes a lease down, and in the same commit that those of `used` in the same scope have ended and were used to the
    /// last. May be done twice without harm; a lease that is not there has ended before.
    async fn put_client_lease(&self, lease: ClientLease, used: Vec<Uuid>) -> StoreResult<()>;

    /// Ends a lease: what is `unused` of it is lost, `lease_lost`, and all else was used. Nothing is written unless it
    /// has ended.
    async fn end_client_lease(&self, id: Uuid, unused: Vec<Lease>) -> StoreResult<LeaseEnd>;

    /// Leases that have not ended, in the order of their ids, after `after`, at most `limit`.
    async fn client_leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<ClientLease>>;
}

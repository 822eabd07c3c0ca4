//! The port to the leases of clients.

use uuid::Uuid;

use super::StoreResult;
use crate::lease::{ClientLease, ClientLeaseFilter, LeaseEnd, LeaseOwner, UsedLeases};
use crate::range::PositionRange;

#[trait_variant::make(Send)]
pub trait LeaseStore: Send + Sync + 'static {
    /// Writes a lease, and ends the `used` leases of the same scope as wholly used, in one commit. A second call changes
    /// nothing; a used lease that is unknown has ended before.
    async fn put_client_lease(&self, lease: ClientLease, used: UsedLeases) -> StoreResult<()>;

    /// Ends a lease: its `unused` positions are lost, `lease_lost`, and all others count as used. Writes nothing unless
    /// [`LeaseEnd::decide`] says that it has ended.
    async fn end_client_lease(
        &self,
        id: Uuid,
        unused: Vec<PositionRange>,
        owner: LeaseOwner,
    ) -> StoreResult<LeaseEnd>;

    /// Open leases in the order of their ids, after `after`, at most `limit`.
    async fn client_leases(
        &self,
        of: ClientLeaseFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<ClientLease>>;
}

//! The port to what a store knows of shared pools: their epochs, and which positions were granted to them.

use std::future::Future;

use crate::client_lease::ClientLeases;
use crate::lease::Lease;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::store::StoreError;

/// A store that knows shared pools. What every one must do is tested in one place, `bates_testkit::claims`.
///
/// Positions are granted to a pool with [`crate::Purpose::Pool`], and held by the process that asked for them until
/// it settles what became of them. Positions that a floor or a setting aside may concern are in no pool afterwards:
/// both make its server unknown, so that it is renewed.
pub trait Pools: ClientLeases {
    /// How a pool stands; one that is new begins at epoch 0, on no server.
    fn pool(&self, place: Place) -> impl Future<Output = Result<Pool, StoreError>> + Send;

    /// The pools of a series that were ever asked for, in the order of their scopes, after `after`, at most `limit`.
    fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(ScopeKey, Pool)>, StoreError>> + Send;

    /// Moves the epoch of a pool on, and writes down what was pushed into it before as lost, `pool_invalidated`.
    /// `None`, and nothing written, if its epoch is not the one that was seen: then somebody else moved it.
    fn renew_pool(
        &self,
        place: Place,
        renewal: Renewal,
    ) -> impl Future<Output = Result<Option<Pool>, StoreError>> + Send;

    /// Writes down what became of positions that were granted to a pool. May be done twice without harm.
    fn settle_pool(
        &self,
        place: Place,
        settling: Settling,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// How a pool stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Raised whenever what the pool holds can no longer be trusted.
    pub epoch: u64,
    /// The server that the epoch began on; `None` if it is not known any more.
    pub server: Option<Server>,
}

/// Which memory a server has: another one after it restarted, failed over or was restored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Made anew by each start of the process.
    pub run: Box<str>,
    /// Made anew whenever a replica takes over, or follows another history.
    pub replication: Box<str>,
}

/// A pool that begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The epoch that ends.
    pub seen: u64,
    /// The new epoch is above this one, too: a server may have seen later ones than a store that was restored.
    pub above: u64,
    /// Where it begins.
    pub server: Server,
}

/// What became of positions that were granted to a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settling {
    /// The epoch in which it was seen.
    pub epoch: u64,
    /// These were pushed: the pool holds them, unless it was renewed since, which lost them.
    pub pushed: Option<Lease>,
    /// These were not pushed and never will be: they are lost, `fill_fenced`.
    pub unused: Option<Lease>,
    /// Below this position, the pool holds nothing any more: it was popped. Does not count if it was renewed since.
    pub popped_to: Option<u64>,
}

//! What a store keeps of a shared pool.

use crate::range::Lease;

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

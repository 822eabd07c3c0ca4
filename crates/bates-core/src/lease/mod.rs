//! Leases of clients: positions that a program outside holds in advance and hands out from its own memory. Owns what
//! such a lease is.
//!
//! A lease of a client moves no cursor: its positions left the machine like all others, and never come back to it. What
//! is kept of it is for the account alone, so that what a client says it did not use is a gap, and what a client that
//! crashed held is known to be uncertain.

mod machine;

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::range::{Lease, Ranges};
use crate::scope::Place;
use crate::series::SeriesName;

pub use machine::{Advance, EndRefused, LeaseAsk, LeaseRefused, Leased};

/// After this silence a client counts as crashed. Clients give back what they have held for half of it.
pub const CLIENT_LEASE_SPAN: Duration = Duration::from_hours(24);

/// Positions that a client holds in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLease {
    /// By what the client names it.
    pub id: Uuid,
    /// Where.
    pub place: Place,
    /// Which positions, ascending; those that the rules reject are among them.
    pub ranges: Vec<Lease>,
    /// Who holds them: a token by its name, or an address.
    pub who: Box<str>,
    /// Since when, to the millisecond.
    pub at: Timestamp,
}

/// Which leases of clients. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLeaseFilter {
    /// Those of a series.
    pub series: Option<SeriesName>,
}

/// What came of ending a lease of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// It has ended.
    Ended {
        /// Where its positions are.
        place: Place,
        /// Those that are lost.
        lost: Ranges,
    },
    /// A range that was returned as unused is not wholly within the lease. The lease stays open.
    Outside {
        /// The range.
        returned: Lease,
        /// What the lease holds, ascending.
        leased: Vec<Lease>,
    },
    /// There is no such lease, or it has ended before.
    Unknown,
}

impl LeaseEnd {
    /// Which positions of a lease are lost if these were not used; or why the lease does not end.
    pub fn lost(leased: Vec<Lease>, unused: &[Lease]) -> Result<Ranges, Self> {
        let held = Ranges::of(leased.iter().copied());
        let is_outside = |range: &&Lease| !Ranges::of([**range]).without(&held).is_empty();
        match unused.iter().find(is_outside) {
            Some(returned) => Err(Self::Outside { returned: *returned, leased }),
            None => Ok(Ranges::of(unused.iter().copied())),
        }
    }
}

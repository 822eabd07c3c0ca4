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

use crate::range::Lease;
use crate::scope::Place;
use crate::series::SeriesName;

pub use crate::ledger::LeaseEnd;
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

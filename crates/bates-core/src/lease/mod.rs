//! Client leases: positions that a program outside holds in advance and hands out from its own memory.
//!
//! A client lease moves no cursor: its positions have left the machine and never return. It is kept for the account
//! alone: what a client did not use is a gap, and what a crashed client held is uncertain.

mod machine;

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::range::Lease;
use crate::scope::Place;
use crate::series::SeriesName;

pub use crate::ledger::LeaseEnd;
pub use machine::{Advance, EndRefused, LeaseAsk, LeaseRefused, Leased};

/// After this time without word, a client has crashed or is cut off: what it used is unknown. Clients give back what
/// they have held for half of it.
pub const CLIENT_LEASE_SPAN: Duration = Duration::from_hours(24);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLease {
    pub id: Uuid,
    pub place: Place,
    /// Ascending, including positions that the rules reject.
    pub ranges: Vec<Lease>,
    /// The name of a token, or an address.
    pub who: Box<str>,
    /// To the millisecond.
    pub at: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLeaseFilter {
    pub series: Option<SeriesName>,
}

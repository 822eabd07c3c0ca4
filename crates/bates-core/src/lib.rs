//! The numbering machine itself: which positions belong to whom, and how they are handed out.
//!
//! ```text
//! series    a named numbering: pattern + promise + limits
//!   scope   one value of its parameters (and its period)
//!     cursor    durable: the first position not yet granted
//!       lease   a half-open range granted durably, handed out from memory
//! ```
//!
//! Owns the rules that keep numbers from coming twice, and the ports ([`Store`], [`Clock`]) behind which
//! databases and time stand.
//! Must never know a database, a socket or a wire format.

mod audit;
mod client_lease;
mod clock;
mod code;
mod counts;
mod dispenser;
mod document;
mod error;
mod gap;
mod grant;
mod jitter;
mod key;
mod lease;
pub mod ledger;
mod machine;
mod measured;
mod moving;
mod name;
mod place;
mod pool;
mod promise;
mod reach;
mod recall;
mod relay;
mod series;
mod store;

pub use audit::{Audit, Auditing, By, How, Record, RecordFilter, Taking};
pub use bates_process::ProcessGuard;
pub use client_lease::{CLIENT_LEASE_SPAN, ClientLease, ClientLeaseFilter, ClientLeases, LeaseEnd};
pub use clock::{Clock, SystemClock};
pub use code::Code;
pub use counts::{Counts, LATENCY_BOUNDS_MICROS, Latency};
pub use dispenser::{Closed, Dispenser, Level};
pub use document::{
    Assign, AssignError, Assigned, Claim, Claimed, Content, Decided, Decision, Delivering, DeliveringEach,
    Delivery, Document, Filter, Idempotency, Outbox, Outcomes, Settlement, Sink, State, Undelivered, Verdict,
};
pub use error::IssueError;
pub use gap::{Account, Books, Gap, GapFilter, Missing, Ranges, Reading, Reason, Saved};
pub use grant::{Grant, GrantError, Purpose, Surrendered, Tail, Want};
pub use jitter::jittered;
pub use key::{KeyTemplate, KeyTemplateError};
pub use lease::{Lease, Taken};
pub use machine::{
    Advance, AssignRefused, EndRefused, Entry, Followed, Found, LeaseAsk, LeaseRefused, Leased, Machine,
    MachineError, Made, NextError, NotAtHand, Numbers, Origin, Peek, PoolLook, PoolRefused, ReadSpec,
    ReadyScope, Recalled, Reconciled, Registry, SERIES_MAX, ScopeName, ScopeRefused, SeriesSpec, Value,
};
pub use moving::{
    Adopted, Departure, Kept, Mark, Movable, Move, MoveError, Moved, Page, Pinning, Request, SetAside,
    leave_store, move_store, release_nodes, stay_in_store,
};
pub use name::{NameError, SeriesName};
pub use place::{Place, ScopeKey, ScopeKeyError};
pub use pool::{
    Amount, Asking, FillError, Filled, Filler, KeptPools, ListLook, Looked, Pool, PoolSettings, PoolTally,
    Pools, Push, Refusal, Renewal, ScopeMatch, Server, Settling, SharedPool, Telling,
};
pub use promise::Promise;
pub use recall::{Holder, Recall};
pub use relay::{CLAIM_LASTS, Relay, RelaySettings};
pub use series::{Limits, Series};
pub use store::{Cursor, Definition, Pinned, Redescription, Store, StoreError};

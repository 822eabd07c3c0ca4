//! The numbering machine: which positions belong to whom, and how they are handed out.
//!
//! ```text
//! series    a named numbering: pattern + promise + limits
//!   scope   one value of its parameters (and its period)
//!     cursor    durable: the first position not yet granted
//!       lease   a half-open range granted durably, handed out from memory
//! ```
//!
//! Owns the rules that keep numbers unique, and the ports ([`Store`], [`Runtime`]) to databases and time.
//! Must never know a database, a socket or a wire format.

mod audit;
mod code;
mod counts;
mod dispenser;
mod document;
mod error;
mod gap;
mod lease;
pub mod ledger;
mod machine;
mod moving;
mod pool;
mod range;
mod recall;
mod runtime;
mod scope;
mod series;
pub mod store;

pub use audit::{Auditing, By, How, Record, RecordFilter, Taking};
pub use bates_pattern::Position;
pub use bates_process::ProcessGuard;
pub use code::Code;
pub use counts::{Counts, LATENCY_BOUNDS_MICROS, Latency};
pub use dispenser::{Closed, Dispenser, Level};
pub use document::{
    Assign, AssignError, AssignRefused, Assigned, CLAIM_LASTS, Claim, Claimed, Content, Decided, Decision,
    DecisionRule, DecisionTime, Delivering, DeliveringEach, Delivery, Document, Filter, Idempotency,
    Numbered, Outcomes, Relay, RelaySettings, Settled, Settlement, Sink, State, Undelivered, Verdict,
    deliver_by_each,
};
pub use error::IssueError;
pub use gap::{
    Account, Gap, GapFilter, KnownFor, KnownRange, KnownScope, Missing, RangeKind, Reading, Reason,
    Reconciled, Saved,
};
pub use lease::{
    Advance, CLIENT_LEASE_SPAN, ClientLease, ClientLeaseFilter, EndRefused, LeaseAsk, LeaseEnd, LeaseRefused,
    Leased,
};
pub use ledger::{Grant, GrantError, Purpose, Surrendered, Tail, Want};
pub use machine::{Found, Machine, NextError, NotAtHand, Numbers, Peek, ReadyScope};
pub use moving::{
    Adopted, Departure, Kept, Mark, MarkChange, Move, MoveError, Moved, NamedStore, Page, Pinning, Request,
    SetAside, leave_store, move_store, release_nodes, stay_in_store,
};
pub use pool::{
    Amount, Asking, FillError, Filled, Filler, KeptPools, ListLook, Looked, Pool, PoolLook, PoolRefused,
    PoolSettings, PoolTally, Push, Refusal, Renewal, ScopeMatch, Server, Settling, SharedPool, Telling,
};
pub use range::{Lease, Ranges, Taken};
pub use recall::{Holder, Recall, Recalled};
pub use runtime::{Runtime, SystemRuntime, Task};
pub use scope::{KeyTemplate, KeyTemplateError, Place, ScopeKey, ScopeKeyError, ScopeName, ScopeRefused};
pub use series::{
    Definition, Entry, Followed, Limits, MachineError, Made, NameError, Origin, Pinned, Promise,
    PromiseChange, ReadSpec, Redescription, Registry, SERIES_MAX, Series, SeriesName, SeriesSpec, Value,
};
pub use store::{
    AuditStore, Cursor, CursorStore, DocumentStore, GapStore, LeaseStore, MoveStore, NodeStore, PoolStore,
    SeriesStore, Store, StoreError, StoreResult,
};

//! What travels between a server and its clients: requests, responses, problems, paths, and scopes in text.
//!
//! Owns how each of them is spelled, once for the server, the Rust client and the command line; `OpenAPI` is made from
//! it (feature `schema`). Must never contain behaviour beyond parsing and spelling, nor know the core or a socket.
#![warn(missing_docs)]

mod audit;
mod document;
mod gap;
mod identifier;
mod lease;
mod number;
mod page;
mod path;
mod pool;
mod problem;
mod scope;
mod series;

pub use audit::{AuditEntry, AuditPage};
pub use document::{
    Assignment, DecisionCount, DocumentRequest, KnownDocument, LineAnswer, OutboxCounts, OutboxPage,
    Reservation, ReservationRequest, is_idempotency_key,
};
pub use gap::{Gap, GapPage, Reconciliation};
pub use identifier::{Match, Reason, Trace, Verdict};
pub use lease::{
    HeldLease, LeaseGrant, LeasePage, LeaseRequest, LeasedNumber, PositionRange, ReturnOutcome, ReturnRequest,
};
pub use number::{NumberRequest, Numbers, Peek, ScopeCursor, ScopePage};
pub use page::Page;
pub use path::{Path, PathError};
pub use pool::{
    AttachRequest, Attachment, PoolList, PoolNumberRequest, PoolNumbers, PoolRequest, PoolStatus, marker_key,
};
pub use problem::Problem;
pub use scope::{Day, DayError, Parameters, scope_text};
pub use series::{
    Amendment, AuditRetention, AuditSetting, Description, LimitSettings, Retirement, Series, SeriesList,
};

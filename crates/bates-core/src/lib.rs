//! The numbering machine: grants positions to holders, and hands them out.
//!
//! ```text
//! series    a named numbering: pattern + promise + limits
//!   scope   one value of its parameters (and its period)
//!     cursor    durable: the first position not yet granted
//!       range   half-open, granted durably, handed out from memory
//! ```
//!
//! Owns the rules that keep numbers unique, and the ports ([`Store`], [`Runtime`]) to databases and time.
//! Must never know a database, a socket or a wire format.

mod audit;
mod caller;
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
mod named;
mod operation;
mod planted;
mod pool;
mod range;
mod recall;
mod runtime;
mod scope;
mod series;
pub mod store;

pub use audit::{Actor, AuditFilter, AuditPolicy, AuditRecord, AuditStamp, Channel};
pub use bates_pattern::Position;
pub use bates_process::{ProcessGuard, host_name};
pub use caller::{
    Allowance, AllowanceError, CallerLimits, CallerToken, DefinitionLimits, Denial, DrawnQuota, Permissions,
    PreviousSecret, QuotaDraw, QuotaRequest, Right, Rights, ScopeRule, SecretDigest, SeriesPattern,
    SeriesPatternError, SeriesSet, Shortage, TOKENS_MAX, TakenAllowance, TokenChange, TokenError, TokenSet,
    is_caller_name,
};
pub use code::ErrorCode;
pub use counts::{Counts, LATENCY_BOUNDS_MICROS, Latency};
pub use dispenser::{Dispenser, HeldLevel, ReleaseReport};
pub use document::{
    ActionCondition, ActionOutcome, ActionRule, AssignError, AssignRequest, Assignment, CLAIM_TTL,
    ClaimRequest, DeliverEachFuture, DeliverFuture, Delivery, DeliveryError, DeliveryOutcomes, Document,
    DocumentAction, DocumentContent, DocumentError, DocumentFilter, DocumentRetention, DocumentState,
    Idempotency, NewDocument, PruneGroup, Relay, RelaySettings, Settlement, Sink, Verdict, VerdictChange,
    deliver_through_each,
};
pub use error::IssueError;
pub use gap::{
    DocumentSource, Gap, GapFilter, GapReason, MissingRange, RangeKind, RangeRecord, ReadNumbersFuture,
    ReadPurpose, ReconcileReport, ScopePositions, ScopeRecord,
};
pub use jiff::Timestamp;
pub use lease::{
    CLIENT_LEASE_TTL, ClientLease, ClientLeaseFilter, EndLeaseError, LeaseContent, LeaseEnd, LeaseError,
    LeaseGrant, LeaseOwner, LeaseRequest, UsedLeases,
};
pub use ledger::{Grant, GrantError, GrantPurpose, GrantRequest, ReleaseOutcome, ReleaseRequest};
pub use machine::{
    IdentifierMatch, ListError, ListRequest, Machine, NextError, NotCached, Numbers, Peek, PoppedNumbers,
    PreparedScope,
};
pub use moving::{
    Departure, MarkChange, Move, MoveError, MoveMark, MovePage, MoveProgress, MovedAdoptions, MovedDocument,
    MovedKey, MovedScope, NamedStore, PinnedSeries, cancel_departure, mark_left, move_store,
    recall_from_nodes,
};
pub use operation::{
    ChainDigest, ChainFault, ChainHead, ChainReport, ChainVerifier, KnownRecord, Operation, OperationFilter,
    OperationKind, OperationRecord, OperationViewer, RETENTION_MIN,
};
pub use pool::{
    FillAmount, FillError, FillOutcome, Filler, LISTS_MAX, ListRefusal, ListStatus, Pool, PoolCounts,
    PoolError, PoolFuture, PoolServer, PoolSet, PoolSettings, PoolSettlement, PoolStatus, PushRequest,
    RenewRequest, Reporter, ScopeMatcher, ServerIdentity, ServerStatus, offered_pool_key,
};
pub use range::{PositionRange, RangeSet, TakenPositions};
pub use recall::{Holder, Recall, RecallOutcome};
pub use runtime::{Runtime, SystemRuntime, Task};
pub use scope::{
    KeyTemplate, KeyTemplateError, ScopeError, ScopeFilter, ScopeId, ScopeKey, ScopeKeyError, ScopeParams,
};
pub use series::{
    CreateOutcome, Definition, DescriptionChange, FloorPlan, Limits, ListValue, MachineError, PinOutcome,
    Promise, PromiseChange, PromiseDecision, Registry, SERIES_MAX, Series, SeriesEntry, SeriesName,
    SeriesNameError, SeriesOrigin, SeriesSpec, SpecReader, SyncReport,
};
pub use store::{
    AuditStore, COUNTED_SCOPES_MAX, CallerStore, Cursor, CursorStore, DocumentStore, GapStore, LeaseStore,
    MoveStore, NodeStore, OperationStore, PoolStore, SeriesStore, Store, StoreError, StoreResult,
    StoreTotals,
};

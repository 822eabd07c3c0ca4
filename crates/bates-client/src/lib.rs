//! The Rust client of Bates: numbers, documents and reservations from a server, and numbers of a shared pool.
//!
//! [`Client`] calls a server, and retries only if that is safe. [`Pool`] takes from a list in Redis that Bates filled, and
//! from Bates if Redis is unreachable, slow or empty. Must never hand out a number twice.
//!
//! ```no_run
//! # async fn first() -> Result<(), Box<dyn std::error::Error>> {
//! use bates_client::{Client, Pool, Settings};
//!
//! let client = Client::connect("http://127.0.0.1:8080")?;
//! let key = client.series("short").next().await?;
//!
//! let mut settings = Settings::new("http://127.0.0.1:8080", "redis://127.0.0.1:6379", "document");
//! settings.scope = [("project", "PROJ"), ("type", "9012")].map(|(n, v)| (n.into(), v.into())).into();
//! let pool = Pool::open(&settings)?;
//! let numbers = pool.pop(10).await?;
//! # Ok(()) }
//! ```
#![warn(missing_docs)]

mod bates_source;
mod callers;
mod calls;
mod client;
mod document;
mod error;
mod lease;
mod pages;
mod pool;
mod redis_list;
mod series;
mod stock;
mod transport;

pub use bates_api as api;
pub use bates_api::{
    Assignment, AuditEntry, ChainHead, DocumentStatus, Gap, HeldLease, IssuedToken, Match, Operation,
    OutboxCounts, Page, Peek, PoolStatus, PositionRange, Reason, Reconciliation, Reservation, Token,
    TokenGrant, TokenRequest, Trace, Verdict,
};
pub use bates_pattern::{Date, Number, Position};
pub use bates_prefetch::{CloseError, Prefetch, TakeError, UnrenderedNumber};
pub use callers::{Operations, Tokens};
pub use calls::DocumentAction;
pub use client::{Client, ClientBuilder};
pub use document::Document;
pub use error::{Error, OpenError, PopError};
pub use lease::{Leases, Prefetched};
pub use pages::{Audit, Gaps, HeldLeases, Outbox, Pages, SeriesDescriptions};
pub use pool::{Pool, Settings};
pub use series::Series;
#[doc(hidden)]
pub use transport::LineAnswers;

/// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/clients.md")]
struct Guide;

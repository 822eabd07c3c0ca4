//! The numbering machine inside your own program: identifiers that never repeat, without a server.
//!
//! ```
//! use bates::{Bates, Series};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("numbers");
//! let series = [Series::new("document", "{project}-{type}-{seq}").start(1001)];
//! let bates = Bates::open(folder, series).await?;
//! let documents = bates.series("document")?.scope([("project", "PROJ"), ("type", "9012")]);
//! assert_eq!(documents.next().await?, "PROJ-9012-1001");
//! assert_eq!(documents.take(100).await?.len(), 100);
//! drop(documents);
//! bates.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Bates`] is an open folder, held by one process at a time. [`Series`] describes a series, and [`Numbering`] is a
//! series with one of its scopes, from which numbers are taken. A number is durable before it is returned: a crash, or a drop
//! without [`Bates::close`], skips numbers held in memory and repeats none.
//!
//! It runs on the Tokio runtime that opens it, multi-threaded or current-thread, with its timers enabled.
//! Without its default feature `cli` the package is this library alone: `bates = { default-features = false }`.
#![warn(missing_docs)]

mod background;
mod embed;

pub use bates_core::{
    Assignment, AuditFilter, AuditPolicy, AuditRecord, Channel, DeliverFuture, Delivery, DeliveryError,
    Document, DocumentAction, DocumentError, DocumentFilter, DocumentState, ErrorCode, Gap, GapFilter,
    GapReason, IdentifierMatch, IssueError, LeaseError, Limits, Machine, MachineError, MissingRange,
    NextError, NotCached, Peek, PositionRange, Promise, ReconcileReport, ReleaseReport, Runtime, ScopeError,
    ScopeId, ScopeKey, SeriesEntry, SeriesName, Sink, StoreError, SystemRuntime, Timestamp,
};
pub use bates_pattern::{Date, Number, Position, Reset, Verdict};
pub use bates_prefetch::{CloseError, Prefetch, TakeError, UnrenderedNumber};
pub use bates_sqlite::{Damage, OpenError, OpenMode, SqliteStore};
pub use embed::{Bates, Error, Leases, Numbering, Prefetched, Series, Settings};
/// The id of a document or reservation.
pub use uuid::Uuid;

/// The code in `docs/embedding.md` compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;

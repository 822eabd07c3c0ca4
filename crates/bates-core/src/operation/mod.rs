//! The operations log: who changed what, other than by taking numbers. Owns the records, their chain of digests, and the
//! rule by which a reader finds a removed or changed record.
//!
//! Invariant: a store writes an operation in the commit of the change that it records, so no change is without a record.

mod chain;
mod machine;
mod verify;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::audit::Channel;
use crate::caller::SeriesSet;
use crate::named::named;
use crate::series::SeriesName;

pub use chain::{ChainDigest, ChainHead, OperationRecord};
pub use verify::{ChainFault, ChainReport, ChainVerifier, KnownRecord, RETENTION_MIN};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    SeriesCreated,
    SeriesChanged,
    SeriesRetired,
    PromiseChanged,
    FloorRaised,
    PositionsAdopted,
    NodesWrittenOff,
    LossAccepted,
    DocumentRetried,
    DocumentAbandoned,
    DocumentsRetried,
    DocumentsAbandoned,
    PoolRequested,
    TokenAdded,
    TokenRotated,
    TokenRevoked,
    /// A server started with another configuration than the last one that wrote to its chain.
    ConfigurationChanged,
    /// Everything was moved here from another store.
    StoreMoved,
    /// Old records of the chain were removed. The record says up to which one.
    RecordsRemoved,
    /// The store has a kind that this version does not know: the record was changed, or a later version wrote it.
    Unreadable,
}

named!(OperationKind {
    SeriesCreated = "series_created",
    SeriesChanged = "series_changed",
    SeriesRetired = "series_retired",
    PromiseChanged = "promise_changed",
    FloorRaised = "floor_raised",
    PositionsAdopted = "positions_adopted",
    NodesWrittenOff = "nodes_written_off",
    LossAccepted = "loss_accepted",
    DocumentRetried = "document_retried",
    DocumentAbandoned = "document_abandoned",
    DocumentsRetried = "documents_retried",
    DocumentsAbandoned = "documents_abandoned",
    PoolRequested = "pool_requested",
    TokenAdded = "token_added",
    TokenRotated = "token_rotated",
    TokenRevoked = "token_revoked",
    ConfigurationChanged = "configuration_changed",
    StoreMoved = "store_moved",
    RecordsRemoved = "records_removed",
    Unreadable = "unreadable",
});

/// A change, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Makes a write idempotent: a store keeps one record for each id.
    pub id: Uuid,
    /// To the microsecond, by the clock of the process.
    pub at: Timestamp,
    /// The name of a token, an address, or the user of a command.
    pub caller: Box<str>,
    pub channel: Channel,
    pub kind: OperationKind,
    /// `None` if it concerns no series, or several.
    pub series: Option<SeriesName>,
    /// The scope, document or token that was changed.
    pub subject: Box<str>,
    pub before: Option<Box<str>>,
    pub after: Option<Box<str>>,
}

impl Operation {
    #[must_use]
    pub fn on(self, subject: &str) -> Self {
        Self { subject: excerpt(subject), ..self }
    }

    #[must_use]
    pub fn between(self, before: Option<&str>, after: Option<&str>) -> Self {
        Self { before: before.map(excerpt), after: after.map(excerpt), ..self }
    }
}

/// A description with thousands of words would fill the log.
const TEXT_BYTES_MAX: usize = 4_096;

/// A text, or the beginning of a long one with the digest of the whole. PostgreSQL stores no NUL.
fn excerpt(text: &str) -> Box<str> {
    let text = text.replace('\0', "\u{fffd}");
    if text.len() <= TEXT_BYTES_MAX {
        return text.into();
    }
    let beginning = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let digest = ChainDigest(Sha256::digest(&text).into());
    format!("{beginning}… ({} bytes, SHA-256 {digest})", text.len()).into()
}

/// A field that is `None` matches every operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// Only operations that a caller may see.
    pub seen_by: Option<OperationViewer>,
    pub series: Option<SeriesName>,
    pub caller: Option<Box<str>>,
    pub kind: Option<OperationKind>,
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}

/// A caller that sees the operations on some series, and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationViewer {
    pub series: SeriesSet,
    pub caller: Box<str>,
}

impl OperationFilter {
    /// For stores that do not filter with SQL.
    pub fn matches(&self, of: &Operation) -> bool {
        let sees = |viewer: &OperationViewer| {
            *viewer.caller == *of.caller
                || of.series.as_ref().is_some_and(|series| viewer.series.contains(series))
        };
        self.seen_by.as_ref().is_none_or(sees)
            && self.series.as_ref().is_none_or(|series| of.series.as_ref() == Some(series))
            && self.caller.as_ref().is_none_or(|caller| *caller == of.caller)
            && self.kind.is_none_or(|kind| kind == of.kind)
            && self.since.is_none_or(|since| of.at >= since)
            && self.until.is_none_or(|until| of.at < until)
    }
}

#[cfg(test)]
mod tests;

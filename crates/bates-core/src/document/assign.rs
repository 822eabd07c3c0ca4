//! Requests to number a document, and the answers of a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bates_pattern::{Position, Scope};
use uuid::Uuid;

use super::DocumentState;
use crate::audit::{AuditRecord, AuditStamp};
use crate::ledger::GrantError;
use crate::range::PositionRange;
use crate::scope::ScopeId;
use crate::series::Promise;
use crate::store::StoreError;

#[derive(Clone)]
pub struct AssignRequest {
    pub scope_id: ScopeId,
    /// Where a new scope begins.
    pub start: u64,
    /// The first position past the space.
    pub end: u64,
    pub scopes_max: u64,
    /// The promise that this process believes the series to have; the store refuses an outdated one. `None`: no check.
    pub promise: Option<Promise>,
    /// Renders the number.
    pub scope: Arc<Scope>,
    /// The id of the document, unless the idempotency key was used before.
    pub document_id: Uuid,
    pub idempotency: Option<Idempotency>,
    /// Answers only a request whose idempotency key was used before, and numbers nothing.
    pub only_repeats: bool,
    pub content: DocumentContent,
    /// The name of a token, or an address.
    pub caller: Box<str>,
    /// If the series is audited. Recorded in the same commit as the number.
    pub audit_stamp: Option<AuditStamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentContent {
    /// The body, to be delivered.
    Document(Box<str>),
    /// The caller saves the document itself, and confirms within this time.
    Reservation(Duration),
}

impl DocumentContent {
    pub const fn state(&self) -> DocumentState {
        match self {
            Self::Document(_) => DocumentState::Pending,
            Self::Reservation(_) => DocumentState::Reserved,
        }
    }
}

/// Recognizes a repeated request. Keys belong to a caller and a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub caller: Box<str>,
    pub key: Box<str>,
    /// The digest of the whole request. The same key with another digest is refused.
    pub digest: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub document_id: Uuid,
    pub position: Position,
    pub number: Box<str>,
    /// The state now: a repeated request may come long after the first.
    pub state: DocumentState,
    /// Whether this request was numbered, and not recognized as a repeated one.
    pub is_new: bool,
}

/// A request, and the number that it got.
#[derive(Clone, Copy, Debug)]
pub struct NewDocument<'r> {
    pub request: &'r AssignRequest,
    pub assignment: &'r Assignment,
}

impl NewDocument<'_> {
    /// `None` unless the series is audited.
    pub fn audit_record(&self) -> Option<AuditRecord> {
        let Assignment { document_id, position, number, .. } = self.assignment;
        Some(AuditRecord {
            id: *document_id,
            scope_id: self.request.scope_id.clone(),
            range: PositionRange::one(*position),
            first: number.clone(),
            last: number.clone(),
            count: 1,
            stamp: self.request.audit_stamp.clone()?,
        })
    }
}

/// Why a store assigned no number. No position was used, unless the store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignError {
    #[error(transparent)]
    Grant(#[from] GrantError),
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The request asks for an earlier answer only.
    #[error("the idempotency key was not used before")]
    KeyUnused,
    /// Another attempt fails in the same way.
    #[error("the idempotency key cannot be kept: {0}")]
    BadKey(Box<str>),
    /// The cursor has passed them, and another attempt searches on.
    #[error("the rules of the series reject each of the next {positions} positions")]
    Rejected { positions: u64 },
}

/// What a search for a position that the rules accept has found.
#[derive(Debug)]
pub(crate) enum Search {
    Accepted(Position, Box<str>),
    /// All positions below this one are rejected.
    RejectedTo(u64),
}

impl From<StoreError> for AssignError {
    fn from(error: StoreError) -> Self {
        Self::Grant(error.into())
    }
}

impl AssignRequest {
    /// Searches the first position at or after `next` that the rules accept, and passes at most `rejected_max` others.
    pub(crate) fn search(&self, next: u64, rejected_max: u64) -> Result<Search, AssignError> {
        let exhausted = || AssignError::Grant(GrantError::Exhausted { left: 0, held_elsewhere: false });
        let last = self.end.min(next.saturating_add(rejected_max).saturating_add(1));
        let bounds = Position::new(next).zip(last.checked_sub(1).and_then(Position::new));
        let (first, last) = bounds.filter(|(first, last)| first <= last).ok_or_else(exhausted)?;
        let mut text = Vec::new();
        match self.scope.accepted(first, last).next_into(&mut text) {
            Some(position) => {
                let number = String::from_utf8(text).expect("a pattern renders UTF-8");
                Ok(Search::Accepted(position, number.into()))
            }
            None if last.value() + 1 == self.end => Err(exhausted()),
            None => Ok(Search::RejectedTo(last.value() + 1)),
        }
    }
}

impl fmt::Debug for AssignRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A document must not appear in a log.
        f.debug_struct("AssignRequest")
            .field("scope_id", &self.scope_id)
            .field("document_id", &self.document_id)
            .finish_non_exhaustive()
    }
}

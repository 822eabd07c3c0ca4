//! The pages that are copied from one store to another. A store may be larger than memory, so pages are small.

use std::fmt;

use bates_pattern::Position;
use jiff::Timestamp;
use uuid::Uuid;

use crate::audit::AuditRecord;
use crate::caller::{CallerToken, DrawnQuota};
use crate::document::{Document, DocumentState, Idempotency};
use crate::gap::{Gap, MissingRange};
use crate::lease::ClientLease;
use crate::operation::{ChainHead, Operation, OperationRecord};
use crate::range::PositionRange;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::{Definition, SeriesName};
use crate::store::Cursor;

/// Written in one commit. A second write changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MovePage {
    /// The id of the store.
    Identity(Uuid),
    /// With the permutation key.
    Definition(Definition, Option<Vec<u8>>),
    Scopes(SeriesName, Vec<MovedScope>),
    /// Adopted positions of a series whose scopes are there already.
    Adopted(SeriesName, Vec<MovedAdoptions>),
    /// The epochs of shared pools. They have no server, so the new store renews each, above its epoch.
    Pools(SeriesName, Vec<(ScopeKey, u64)>),
    Documents(Vec<MovedDocument>),
    Keys(Vec<MovedKey>),
    Gaps(Vec<Gap>),
    /// As of when the gaps of each series are.
    Reconciled(Vec<(SeriesName, Timestamp)>),
    Records(Vec<AuditRecord>),
    Tokens(Vec<CallerToken>),
    Quotas(Vec<DrawnQuota>),
    Operations(Vec<OperationRecord>),
    /// After the operations: the new store appends to the chains of its host.
    Chains(Vec<ChainHead>),
    /// The record of the move itself, after the chains.
    Arrival(Operation),
    /// Clients go on using them and return them to the new store.
    ClientLeases(Vec<ClientLease>),
    /// Of series that were created at run time. Last: with its description a series is in use.
    Descriptions(Vec<(SeriesName, Box<str>)>),
}

/// A scope as another store had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedScope {
    pub scope: ScopeKey,
    pub cursor: Cursor,
    pub ledger: Vec<PositionRange>,
    /// Includes ranges that processes and shared pools held when the store was left.
    pub lost: Vec<MissingRange>,
    /// The first position since which it is gapless; 0 if it always was.
    pub gapless_from: u64,
}

/// Adopted positions of a scope, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAdoptions {
    pub scope: ScopeKey,
    /// Ascending, never empty.
    pub positions: Vec<Position>,
}

impl MovedAdoptions {
    /// Appends a position; scopes and positions come in order.
    pub fn add(page: &mut Vec<Self>, scope: &str, position: Position) {
        match page.last_mut() {
            Some(last) if last.scope.as_str() == scope => last.positions.push(position),
            _ => page.push(Self { scope: ScopeKey::from_store(scope), positions: vec![position] }),
        }
    }
}

/// A document, and its body while the store has it.
#[derive(Clone, PartialEq, Eq)]
pub struct MovedDocument {
    pub document: Document,
    pub body: Option<Box<str>>,
}

impl MovedDocument {
    /// A claim cannot be settled in the new store, and its holder may have delivered the document.
    pub fn new(mut document: Document, body: Option<Box<str>>, is_claimed: bool) -> Self {
        if is_claimed {
            (document.due, document.in_doubt) = (Some(Timestamp::UNIX_EPOCH), true);
        }
        Self { document, body }
    }
}

/// A request that was numbered under an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedKey {
    pub scope_id: ScopeId,
    pub idempotency: Idempotency,
    pub document_id: Uuid,
    pub position: Position,
    pub number: Box<str>,
    /// The state of its document when it is removed.
    pub pruned_as: DocumentState,
}

impl fmt::Debug for MovedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A document must not appear in a log.
        f.debug_struct("MovedDocument").field("document", &self.document).finish_non_exhaustive()
    }
}

//! What is copied from one store to another, a page at a time: each as it is in the old store and will be in the new.
//!
//! Must never hold more than a page: a store may be larger than memory.

use std::fmt;

use bates_pattern::Position;
use jiff::Timestamp;
use uuid::Uuid;

use crate::audit::Record;
use crate::document::{Document, Idempotency, State};
use crate::gap::{Gap, Missing};
use crate::lease::ClientLease;
use crate::range::Lease;
use crate::scope::{Place, ScopeKey};
use crate::series::{Definition, SeriesName};
use crate::store::Cursor;

/// A page that is written in one commit. Written twice, it is the same as written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// Which store it is.
    Identity(Uuid),
    /// What decides how the positions of a series read, and its permutation key.
    Definition(Definition, Option<Vec<u8>>),
    /// Scopes of a series.
    Scopes(SeriesName, Vec<Adopted>),
    /// Positions of a series that were set aside. Its scopes are there already.
    Aside(SeriesName, Vec<SetAside>),
    /// The epochs of the shared pools of a series. None has a server, so each is begun anew, above its epoch.
    Pools(SeriesName, Vec<(ScopeKey, u64)>),
    /// Documents and reservations.
    Documents(Vec<Kept>),
    /// Idempotency keys.
    Requests(Vec<Request>),
    /// Gaps that were found.
    Gaps(Vec<Gap>),
    /// Records of the audit.
    Records(Vec<Record>),
    /// Leases of clients, which they go on using and return to the new store.
    ClientLeases(Vec<ClientLease>),
    /// The series that were made at run time, with their descriptions. Last: with them a series is in use.
    Descriptions(Vec<(SeriesName, Box<str>)>),
}

/// A scope as it was in another store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The scope.
    pub scope: ScopeKey,
    /// Its cursor.
    pub cursor: Cursor,
    /// What was issued in it one by one.
    pub ledger: Vec<Lease>,
    /// What nobody has of it. Who held something when the store was left counts as crashed, and what a shared pool
    /// held is given up with its epoch.
    pub lost: Vec<Missing>,
    /// The first position since which it is gapless; 0 if it always was.
    pub gapless_from: u64,
}

/// Positions of a scope that were set aside, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The scope.
    pub scope: ScopeKey,
    /// Ascending, and never none.
    pub positions: Vec<Position>,
}

impl SetAside {
    /// Adds a position behind all others, in the order of scopes.
    pub fn add(page: &mut Vec<Self>, scope: &str, position: Position) {
        match page.last_mut() {
            Some(last) if last.scope.as_str() == scope => last.positions.push(position),
            _ => page.push(Self { scope: ScopeKey::from_store(scope), positions: vec![position] }),
        }
    }
}

/// A document as a store keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept {
    /// The document.
    pub document: Document,
    /// What is to be delivered, as long as it is kept.
    pub body: Option<Box<str>>,
}

impl Kept {
    /// A document that leaves its store. Who has claimed it settles nothing any more, and may have delivered it.
    pub fn leaving(mut document: Document, body: Option<Box<str>>, is_claimed: bool) -> Self {
        if is_claimed {
            (document.due, document.in_doubt) = (Some(Timestamp::UNIX_EPOCH), true);
        }
        Self { document, body }
    }
}

/// A request that was numbered, by the key that its caller gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where its number is from; the series is part of the key.
    pub place: Place,
    /// By what it is known.
    pub idempotency: Idempotency,
    /// The id of its document.
    pub event: Uuid,
    /// The position of its number.
    pub position: Position,
    /// Its number.
    pub number: Box<str>,
    /// What its document was, or will have been, when it is removed.
    pub pruned_as: State,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A document may hold what a log must not.
        f.debug_struct("Kept").field("document", &self.document).finish_non_exhaustive()
    }
}

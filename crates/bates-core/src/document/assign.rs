//! Requests to number a document, and what a store answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bates_pattern::{Position, Scope};
use uuid::Uuid;

use super::State;
use crate::audit::{Record, Taking};
use crate::ledger::GrantError;
use crate::scope::Place;
use crate::series::Promise;
use crate::store::StoreError;

/// Positions that the rules may reject in a row before a request fails.
const REJECTED_MAX: u64 = 1_000_000;

#[derive(Clone)]
pub struct Assign {
    pub place: Place,
    /// Where a new scope begins.
    pub start: u64,
    /// The first position past the space.
    pub end: u64,
    pub scopes_max: u64,
    /// What this process knows the series to promise; `None` is not checked.
    pub promise: Option<Promise>,
    /// Renders its number.
    pub scope: Arc<Scope>,
    /// The id of the document, if the request is new.
    pub event: Uuid,
    pub idempotency: Option<Idempotency>,
    pub content: Content,
    /// If the series is audited: recorded in the same commit, if the request is new.
    pub audit: Option<Taking>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The body, to be delivered.
    Document(Box<str>),
    /// The caller saves the document itself, and confirms within this time.
    Reservation(Duration),
}

impl Content {
    pub const fn state(&self) -> State {
        match self {
            Self::Document(_) => State::Pending,
            Self::Reservation(_) => State::Reserved,
        }
    }
}

/// Identifies a repeated request. Keys belong to a caller and a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub caller: Box<str>,
    pub key: Box<str>,
    /// Of the whole request: the same key with another digest is refused.
    pub digest: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    pub event: Uuid,
    pub position: Position,
    pub number: Box<str>,
    /// The current state: the same request may come long after the first.
    pub state: State,
    /// Whether this request was the first.
    pub is_new: bool,
}

/// A request, and the number that it got.
#[derive(Clone, Copy, Debug)]
pub struct Numbered<'r> {
    pub assign: &'r Assign,
    pub assigned: &'r Assigned,
}

impl Numbered<'_> {
    /// The audit record, if the series is audited.
    pub fn record(&self) -> Option<Record> {
        let Self { assign, assigned } = self;
        let Assigned { event, position, number, .. } = assigned;
        let record = |taking| Record::of_document(*event, &assign.place, *position, number, taking);
        assign.audit.as_ref().map(record)
    }
}

/// Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignError {
    #[error(transparent)]
    Grant(#[from] GrantError),
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Permanent.
    #[error("the idempotency key cannot be kept: {0}")]
    BadKey(Box<str>),
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected { positions: u64 },
}

impl From<StoreError> for AssignError {
    fn from(error: StoreError) -> Self {
        Self::Grant(error.into())
    }
}

impl Assign {
    /// The first position from `next` on that the rules accept, and its number.
    pub fn first_accepted(&self, next: u64) -> Result<(Position, Box<str>), AssignError> {
        let exhausted = || AssignError::Grant(GrantError::Exhausted { left: 0, elsewhere: false });
        let last = self.end.min(next.saturating_add(REJECTED_MAX)).checked_sub(1).and_then(Position::new);
        let bounds = Position::new(next).zip(last).filter(|(first, last)| first <= last);
        let (first, last) = bounds.ok_or_else(exhausted)?;
        let mut text = Vec::new();
        match self.scope.accepted(first, last).next_into(&mut text) {
            Some(position) => {
                let number = String::from_utf8(text).expect("a pattern renders UTF-8");
                Ok((position, number.into()))
            }
            None if last.value() + 1 == self.end => Err(exhausted()),
            None => Err(AssignError::AllRejected { positions: REJECTED_MAX }),
        }
    }
}

impl fmt::Debug for Assign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content may hold what a log must not.
        f.debug_struct("Assign")
            .field("place", &self.place)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

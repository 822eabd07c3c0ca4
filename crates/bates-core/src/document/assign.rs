//! A number for a document: what is asked of a store, and what it answers.

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

/// Rules that reject so many positions in a row will hardly accept the next one soon.
const REJECTED_MAX: u64 = 1_000_000;

/// A document that is to be numbered.
#[derive(Clone)]
pub struct Assign {
    /// Where.
    pub place: Place,
    /// Where a new scope begins.
    pub start: u64,
    /// The first position past the space.
    pub end: u64,
    /// How many scopes the series may have.
    pub scopes_max: u64,
    /// What the series promises, as far as this process knows. `None` where it does not matter.
    pub promise: Option<Promise>,
    /// What renders its number.
    pub scope: Arc<Scope>,
    /// Its id for ever, if the request is new.
    pub event: Uuid,
    /// By what the same request is known when it comes again.
    pub idempotency: Option<Idempotency>,
    /// What is numbered.
    pub content: Content,
    /// Who asks, how and when, where the series is audited: recorded in the same commit, if the request is new.
    pub audit: Option<Taking>,
}

/// What is numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A document to be delivered.
    Document(Box<str>),
    /// One that somebody else saves, and confirms within this time.
    Reservation(Duration),
}

impl Content {
    /// The state that it begins in.
    pub const fn state(&self) -> State {
        match self {
            Self::Document(_) => State::Pending,
            Self::Reservation(_) => State::Reserved,
        }
    }
}

/// By what a request is known when it comes again: keys belong to a caller and a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Who asks.
    pub caller: Box<str>,
    /// What the caller calls the request.
    pub key: Box<str>,
    /// Of everything that is asked: the same key with another digest is refused.
    pub digest: [u8; 32],
}

/// A number that was assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The id of the document.
    pub event: Uuid,
    /// The position of its number.
    pub position: Position,
    /// Its number.
    pub number: Box<str>,
    /// What became of it: the same request may come long after the first.
    pub state: State,
    /// Whether this request was the first.
    pub is_new: bool,
}

/// A document that a request has numbered, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Numbered<'r> {
    /// The request.
    pub assign: &'r Assign,
    /// Its number.
    pub assigned: &'r Assigned,
}

impl Numbered<'_> {
    /// Who took the number, where the series is audited.
    pub fn record(&self) -> Option<Record> {
        let Self { assign, assigned } = self;
        let Assigned { event, position, number, .. } = assigned;
        let record = |taking| Record::of_document(*event, &assign.place, *position, number, taking);
        assign.audit.as_ref().map(record)
    }
}

/// A number that was not assigned. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignError {
    /// No position was granted.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The store cannot keep the key, ever.
    #[error("the idempotency key cannot be kept: {0}")]
    BadKey(Box<str>),
    /// The rules reject whatever comes next.
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected {
        /// How many were tried.
        positions: u64,
    },
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
        let last = self.end.min(next.saturating_add(REJECTED_MAX)).checked_sub(1).ok_or_else(exhausted)?;
        let bounds = (Position::new(next), Position::new(last));
        let (Some(first), Some(last)) = bounds else { return Err(exhausted()) };
        if first > last {
            return Err(exhausted());
        }
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
        // A document may hold what a log must not.
        f.debug_struct("Assign")
            .field("place", &self.place)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

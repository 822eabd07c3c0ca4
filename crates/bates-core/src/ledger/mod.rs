//! The numbering rules: what each request for a scope gets, and what changes in the store.
//!
//! A store loads the rows that a batch touches, calls [`decide`] for each scope, and writes each [`ScopeChange`] in the
//! same transaction. Must never know a database, a clock or randomness.

mod adopted;
mod change;
mod decide;
mod grant;
mod keys;
mod lease;
mod pool;

use crate::document::{Assign, AssignError, Assigned, Numbered};
use crate::range::{Lease, Ranges};
use crate::series::Promise;
use crate::store::{Cursor, StoreError};
use bates_pattern::Position;

pub use adopted::{AdoptedPage, AdoptedPositions};
pub use change::ScopeChange;
pub use decide::decide;
pub use grant::{Grant, GrantError, Purpose, Surrendered, Tail, Want};
pub use keys::{Key, KeyState, KeyUse, Keys};
pub use lease::LeaseEnd;
pub use pool::{Pool, PoolBefore, PoolChange, PoolState, PooledRange, Renewal, Server, Settling};

/// A request for one scope.
#[derive(Clone, Debug)]
pub enum Request {
    /// Grant positions.
    Grant(Want),
    /// Take back the unused end of a range.
    Release(Tail),
    /// Number a document, or reserve a number for one.
    Assign(Box<Assign>),
    /// Raise the cursor to this position; a higher cursor stays.
    RaiseFloor(u64),
    /// Grant these positions to no one: another system has issued their numbers.
    Adopt(Vec<Position>),
    /// The holder gives these positions up unused; only those that it holds are lost.
    GiveUp(Vec<Lease>),
    /// The holders count as crashed: whether they used what they hold is not known.
    WriteOff,
    /// Let no range that was granted before be released.
    Fence,
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The range, or why there is none.
    Grant(Result<Grant, GrantError>),
    /// Whether the cursor went back.
    Release(Result<Surrendered, StoreError>),
    /// The number, or why there is none.
    Assign(Result<Assigned, AssignError>),
    /// Where the cursor stands afterwards.
    RaiseFloor(Result<Cursor, StoreError>),
    /// How many of the positions had been granted before.
    Adopt(Result<u64, StoreError>),
    /// A request that only changes the store.
    Change(Result<(), StoreError>),
}

impl Request {
    /// The outcome of a request whose batch the store could not commit.
    pub fn failed(&self, error: StoreError) -> Outcome {
        match self {
            Self::Grant(_) => Outcome::Grant(Err(error.into())),
            Self::Release(_) => Outcome::Release(Err(error)),
            Self::Assign(_) => Outcome::Assign(Err(error.into())),
            Self::RaiseFloor(_) => Outcome::RaiseFloor(Err(error)),
            Self::Adopt(_) => Outcome::Adopt(Err(error)),
            Self::GiveUp(_) | Self::WriteOff | Self::Fence => Outcome::Change(Err(error)),
        }
    }

    /// The document that this request has numbered, if its outcome says so.
    pub fn new_document<'r>(&'r self, outcome: &'r Outcome) -> Option<Numbered<'r>> {
        match (self, outcome) {
            (Self::Assign(assign), Outcome::Assign(Ok(assigned))) if assigned.is_new => {
                Some(Numbered { assign, assigned })
            }
            _ => None,
        }
    }
}

/// A scope as the store has it before a batch.
#[derive(Clone, Debug, Default)]
pub struct ScopeBefore {
    /// Its cursor; `None` for a new scope.
    pub cursor: Option<Cursor>,
    /// Its series. A scope that has a cursor may leave it out.
    pub series: Option<SeriesBefore>,
    /// What the series promises. A store that is not shared leaves it out.
    pub promise: Option<Promise>,
    /// Its adopted positions, from where the cursor may stand during the batch. See [`AdoptedPositions::needed`].
    pub adopted: AdoptedPositions,
    /// The first position that this process still holds. A store with several nodes leaves it out.
    pub held_from: Option<u64>,
    /// Positions that a crashed process held and that are not reported as lost yet.
    pub crashed: Ranges,
    /// For [`Request::GiveUp`] and [`Request::WriteOff`]: the positions that the holders hold. What became of others that
    /// they were granted is known.
    pub held: Ranges,
}

/// A series as the store has it before a batch.
#[derive(Clone, Copy, Debug)]
pub struct SeriesBefore {
    /// How many scopes it has.
    pub scopes: u64,
    /// Where its scopes begin.
    pub start: u64,
}

/// What a batch does to one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What each request gets, in the order of the requests.
    pub outcomes: Vec<Outcome>,
    /// What the store writes.
    pub change: ScopeChange,
}

impl Decision {
    /// Whether a request was told that the scope is exhausted.
    pub fn is_exhausted(&self) -> bool {
        self.outcomes.iter().any(|outcome| matches!(outcome.exhausted(), Some(GrantError::Exhausted { .. })))
    }

    /// For a scope that is exhausted: `holds_spent` says whether this node has leases in the store, and `elsewhere`
    /// whether other nodes have.
    pub fn know_holders(&mut self, holds_spent: bool, elsewhere: bool) {
        let Self { outcomes, change } = self;
        change.used_to = change.used_to.max(change.spent_to.filter(|_| holds_spent));
        for outcome in outcomes {
            match outcome {
                Outcome::Grant(Err(GrantError::Exhausted { elsewhere: told, .. }))
                | Outcome::Assign(Err(AssignError::Grant(GrantError::Exhausted {
                    elsewhere: told, ..
                }))) => *told = elsewhere,
                _ => {}
            }
        }
    }
}

/// What a request of each kind gets. Invariant: an outcome is of the kind of its request.
impl Outcome {
    /// Of a [`Request::Grant`].
    pub fn into_grant(self) -> Result<Grant, GrantError> {
        if let Self::Grant(grant) = self { grant } else { unreachable!("{self:?} is not of a grant") }
    }

    /// Of a [`Request::Release`].
    pub fn into_release(self) -> Result<Surrendered, StoreError> {
        if let Self::Release(release) = self { release } else { unreachable!("{self:?} is not of a release") }
    }

    /// Of a [`Request::Assign`].
    pub fn into_assign(self) -> Result<Assigned, AssignError> {
        if let Self::Assign(assign) = self { assign } else { unreachable!("{self:?} is not of a document") }
    }

    /// Of a [`Request::RaiseFloor`].
    pub fn into_floor(self) -> Result<Cursor, StoreError> {
        if let Self::RaiseFloor(floor) = self { floor } else { unreachable!("{self:?} is not of a floor") }
    }

    /// Of a [`Request::Adopt`].
    pub fn into_adopted(self) -> Result<u64, StoreError> {
        if let Self::Adopt(adopted) = self { adopted } else { unreachable!("{self:?} is not of an adoption") }
    }

    /// Of a request that only changes the store.
    pub fn into_change(self) -> Result<(), StoreError> {
        if let Self::Change(change) = self { change } else { unreachable!("{self:?} is not of a change") }
    }

    fn exhausted(&self) -> Option<&GrantError> {
        match self {
            Self::Grant(Err(error)) | Self::Assign(Err(AssignError::Grant(error))) => Some(error),
            _ => None,
        }
    }
}

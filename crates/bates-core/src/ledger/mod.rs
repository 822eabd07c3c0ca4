//! The numbering rules: what each request for a scope gets, and what changes in the store. (The table `ledger` of a
//! store is something else: the positions of documents, reservations and gapless numbers.)
//!
//! A store loads the rows that a batch touches, calls [`decide()`] for each scope, and writes each [`ScopeChange`] in the
//! same transaction. Must never know a database, a clock or randomness.

mod adopted;
mod batch_state;
mod decide;
mod grant;
mod lease;
mod pool;

use crate::document::{AssignError, AssignRequest, Assignment, NewDocument};
use crate::gap::{GapReason, MissingRange};
use crate::operation::Operation;
use crate::range::{PositionRange, RangeSet};
use crate::series::Promise;
use crate::store::{Cursor, StoreError, StoreResult};
use bates_pattern::Position;

pub use adopted::{AdoptedPage, AdoptedPositions};
pub use batch_state::{BatchState, IdempotencyKey, KeyState, KeyUse};
pub use decide::decide;
pub(crate) use grant::hold_max;
pub use grant::{Grant, GrantError, GrantPurpose, GrantRequest, ReleaseOutcome, ReleaseRequest};
pub use lease::LeaseEnd;
pub use pool::{
    Pool, PoolBefore, PoolChange, PoolSettlement, PooledRange, PooledState, RenewRequest, RowBounds,
    ServerIdentity,
};

#[derive(Clone, Debug)]
pub enum Request {
    Grant(GrantRequest),
    /// Take back the unused end of a held range.
    Release(ReleaseRequest),
    /// Number a document, or reserve a number for one.
    Assign(Box<AssignRequest>),
    /// Raise the cursor to this position; a higher cursor stays.
    RaiseFloor(u64, Option<Box<Operation>>),
    /// Never hand out these positions: another system has issued their numbers.
    Adopt(Vec<Position>, Option<Box<Operation>>),
    /// The holder gives these positions up unused; only those that it holds are lost.
    GiveUp(Vec<PositionRange>),
    /// The holders count as crashed: whether they used their positions is not known.
    WriteOff,
    /// Refuse later releases of ranges that were granted before.
    Fence,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Grant(Result<Grant, GrantError>),
    /// Whether the cursor went back.
    Release(StoreResult<ReleaseOutcome>),
    Assign(Result<Assignment, AssignError>),
    /// Where the cursor stands afterwards.
    RaiseFloor(StoreResult<Cursor>),
    /// How many of the positions had been granted before.
    Adopt(StoreResult<u64>),
    /// A request that only changes the store.
    Change(StoreResult<()>),
}

impl Request {
    /// The outcome of a request whose batch the store could not commit.
    pub fn failed(&self, error: StoreError) -> Outcome {
        match self {
            Self::Grant(_) => Outcome::Grant(Err(error.into())),
            Self::Release(_) => Outcome::Release(Err(error)),
            Self::Assign(_) => Outcome::Assign(Err(error.into())),
            Self::RaiseFloor(..) => Outcome::RaiseFloor(Err(error)),
            Self::Adopt(..) => Outcome::Adopt(Err(error)),
            Self::GiveUp(_) | Self::WriteOff | Self::Fence => Outcome::Change(Err(error)),
        }
    }

    /// The document that this request has numbered, unless an earlier request had.
    pub fn new_document<'r>(&'r self, outcome: &'r Outcome) -> Option<NewDocument<'r>> {
        match (self, outcome) {
            (Self::Assign(assign), Outcome::Assign(Ok(assignment))) if assignment.is_new => {
                Some(NewDocument { request: assign, assignment })
            }
            _ => None,
        }
    }
}

/// A scope as the store has it before a batch.
#[derive(Clone, Debug, Default)]
pub struct ScopeBefore {
    /// `None` for a new scope.
    pub cursor: Option<Cursor>,
    /// A store may leave it out if the scope has a cursor.
    pub series: Option<SeriesBefore>,
    /// A store that is not shared leaves it out.
    pub promise: Option<Promise>,
    /// Those that matter to the batch: see [`AdoptedPositions::for_requests`].
    pub adopted: AdoptedPositions,
    /// The first position that this process still holds. A shared store leaves it out.
    pub held_from: Option<u64>,
    /// Positions that a crashed process held and that are not reported as lost yet.
    pub crashed: RangeSet,
    /// For [`Request::GiveUp`] and [`Request::WriteOff`]: the positions that the holders hold.
    pub held: RangeSet,
}

#[derive(Clone, Copy, Debug)]
pub struct SeriesBefore {
    pub scopes: u64,
    /// Where its scopes begin.
    pub start: u64,
    /// No scope that is created from now on begins below this position.
    pub floor: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// In the order of the requests.
    pub outcomes: Vec<Outcome>,
    pub change: ScopeChange,
}

/// The changes that the store writes for one scope, all in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeChange {
    pub cursor: Option<Cursor>,
    /// The series has one more scope.
    pub is_new: bool,
    /// For the table `ledger`; adjacent ranges are joined.
    pub issued: Vec<PositionRange>,
    /// Ranges that this process holds from now on.
    pub held: Vec<PositionRange>,
    /// Ranges that this process holds for a pool.
    pub pooled: Vec<PositionRange>,
    /// Ranges granted to callers directly, for a store that keeps the held positions of a process as one range.
    pub handed_out: Vec<PositionRange>,
    /// This process has handed out all that it held below this position.
    pub used_to: Option<u64>,
    /// Becomes `used_to` if the scope is exhausted, and the store needs it: see [`Decision::set_holders`].
    pub used_to_if_exhausted: Option<u64>,
    /// This process holds nothing below this position any more, except what `held` adds.
    pub released_to: Option<u64>,
    /// The first position that this process holds afterwards, for a store that keeps it with the cursor.
    pub held_from: Option<u64>,
    /// Positions that the holders of [`ScopeBefore::held`] no longer hold.
    pub given_up: RangeSet,
    pub lost: Vec<MissingRange>,
    pub adopted: Vec<Position>,
    /// Whether the scope's pool must be checked against its Redis server again.
    pub resets_pool_server: bool,
    /// For the operations log.
    pub operations: Vec<Operation>,
}

impl ScopeChange {
    pub fn is_empty(&self) -> bool {
        self.cursor.is_none()
            && self.used_to.is_none()
            && self.released_to.is_none()
            && self.lost.is_empty()
            && !self.resets_pool_server
            && self.operations.is_empty()
    }

    fn issue(&mut self, range: PositionRange) {
        match self.issued.last_mut() {
            Some(last) if let Some(joined) = last.joined(range) => *last = joined,
            _ => self.issued.push(range),
        }
    }

    fn lose(&mut self, ranges: impl IntoIterator<Item = PositionRange>, reason: GapReason) {
        self.lost.extend(MissingRange::all(ranges, reason));
    }
}

impl Decision {
    /// Whether a request found the scope exhausted.
    pub fn is_exhausted(&self) -> bool {
        self.outcomes.iter().any(|outcome| matches!(outcome.error(), Some(GrantError::Exhausted { .. })))
    }

    /// For an exhausted scope. `has_spent_rows`: the store believes that this node holds positions that it has handed out.
    pub fn set_holders(&mut self, has_spent_rows: bool, is_held_elsewhere: bool) {
        let Self { outcomes, change } = self;
        change.used_to = change.used_to.max(change.used_to_if_exhausted.filter(|_| has_spent_rows));
        for outcome in outcomes {
            if let Outcome::Grant(Err(error)) | Outcome::Assign(Err(AssignError::Grant(error))) = outcome
                && let GrantError::Exhausted { held_elsewhere, .. } = error
            {
                *held_elsewhere = is_held_elsewhere;
            }
        }
    }
}

/// Invariant: an outcome is of the kind of its request.
impl Outcome {
    pub fn into_grant(self) -> Result<Grant, GrantError> {
        if let Self::Grant(grant) = self { grant } else { unreachable!("{self:?} is not of a grant") }
    }

    pub fn into_release(self) -> StoreResult<ReleaseOutcome> {
        if let Self::Release(release) = self { release } else { unreachable!("{self:?} is not of a release") }
    }

    pub fn into_assign(self) -> Result<Assignment, AssignError> {
        if let Self::Assign(assign) = self { assign } else { unreachable!("{self:?} is not of a document") }
    }

    pub fn into_floor(self) -> StoreResult<Cursor> {
        if let Self::RaiseFloor(floor) = self { floor } else { unreachable!("{self:?} is not of a floor") }
    }

    pub fn into_adopted(self) -> StoreResult<u64> {
        if let Self::Adopt(adopted) = self { adopted } else { unreachable!("{self:?} is not of an adoption") }
    }

    pub fn into_change(self) -> StoreResult<()> {
        if let Self::Change(change) = self { change } else { unreachable!("{self:?} is not of a change") }
    }

    fn error(&self) -> Option<&GrantError> {
        match self {
            Self::Grant(Err(error)) | Self::Assign(Err(AssignError::Grant(error))) => Some(error),
            _ => None,
        }
    }
}

//! The port to the outbox: documents numbered, claimed, delivered and decided on. Filled by every store.
//!
//! Times are told as durations from now: each store has one clock, that of its database, and what is due does not
//! depend on the clocks of nodes. What every outbox must do is tested in one place, `bates_testkit::claims`.

use std::future::Future;
use std::time::Duration;

use uuid::Uuid;

use super::{Assign, AssignError, Assigned, Delivery, Document, State};
use crate::name::SeriesName;
use crate::place::Place;
use crate::store::{Store, StoreError};

/// A durable keeper of documents.
///
/// Invariant: cursor, ledger, document and idempotency key are written in one commit, or none of them is. A number
/// that was assigned is never assigned again, whatever becomes of its document.
pub trait Outbox: Store {
    /// Numbers a document. Calls that wait together share a commit. The same request gets the same number.
    fn assign(&self, assign: Assign) -> impl Future<Output = Result<Assigned, AssignError>> + Send;

    /// Documents by their ids, ascending, after `after`, at most `limit`.
    fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Document>, StoreError>> + Send;

    /// Takes pending documents that are due, those with the fewest tries first, for as long as the claim lasts. Each
    /// claim is a try. What is not settled in time may be claimed by somebody else.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Vec<Claimed>, StoreError>> + Send;

    /// Writes down what became of claims; answers how many were accepted. A verdict counts only for the try that
    /// claimed it: whoever slept through its claim changes nothing.
    fn settle(&self, settled: Vec<Settlement>) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Decides about one document.
    fn decide(
        &self,
        event: Uuid,
        decision: Decision,
    ) -> impl Future<Output = Result<Decided, StoreError>> + Send;

    /// Decides about all documents that it can be decided about so; answers about how many. Those with a try under way
    /// are not abandoned.
    fn decide_all(
        &self,
        filter: Filter,
        decision: Decision,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Voids reservations whose time is over, at most `limit`; answers how many.
    fn expire(&self, limit: usize) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Removes what was delivered or confirmed so long ago, at most `limit`; answers how many. The ledger and the
    /// idempotency keys stay.
    fn prune(&self, age: Duration, limit: usize) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Waits until others have written something of a series that can be delivered. Word may get lost, and a store that
    /// is not shared has none: who waits must look now and then all the same.
    fn woken(&self, _series: &SeriesName) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Whether word of others arrives just now, as far as the store knows: who waits for it may look less often.
    fn is_told(&self) -> bool {
        false
    }

    /// How many documents of each series are in each state.
    fn tally(&self) -> impl Future<Output = Result<Vec<(SeriesName, State, u64)>, StoreError>> + Send;
}

/// Which documents. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The one with this id.
    pub event: Option<Uuid>,
    /// Those of a series.
    pub series: Option<SeriesName>,
    /// Those of a scope.
    pub place: Option<Place>,
    /// Those in a state.
    pub state: Option<State>,
    /// Those with this number.
    pub number: Option<Box<str>>,
}

/// Documents that a relay wants to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of this series.
    pub series: SeriesName,
    /// At most so many.
    pub limit: usize,
    /// Until so many bytes of bodies are reached: one more than fits, so that a large one is claimed too.
    pub bytes: usize,
    /// For so long.
    pub lasts: Duration,
}

/// A document that was claimed; the attempt is what its verdict must name.
pub type Claimed = Delivery;

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The document.
    pub event: Uuid,
    /// The try that claimed it.
    pub attempt: u32,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was delivered.
    Delivered,
    /// It failed, and is tried again after this time.
    Again(Duration, Box<str>),
    /// It failed for the last time.
    Dead(Box<str>),
    /// It failed, and the sink may have taken the document all the same. It is tried again after this time, or was
    /// tried for the last time.
    Unanswered(Option<Duration>, Box<str>),
}

impl Verdict {
    /// The state after it, when the next try is due, and what went wrong.
    pub fn written(&self) -> (State, Option<Duration>, Option<&str>) {
        match self {
            Self::Delivered => (State::Delivered, None, None),
            Self::Again(after, error) | Self::Unanswered(Some(after), error) => {
                (State::Pending, Some(*after), Some(error))
            }
            Self::Dead(error) | Self::Unanswered(None, error) => (State::Dead, None, Some(error)),
        }
    }

    /// Whether the sink may have taken the document although it was not settled as delivered.
    pub const fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Unanswered(..))
    }
}

/// What somebody decides about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A reservation's document was saved.
    Confirm,
    /// It was not, and will not be.
    Void,
    /// A dead document is delivered after all, or a pending one at once. Its tries begin again, unless one is under
    /// way: that one counts no more, and the next has another number.
    Retry,
    /// A pending or dead document is not delivered. Not while a try is under way, which may deliver it.
    Abandon,
}

impl Decision {
    /// The states in which it can be made, and the one that it leads to.
    pub const fn changes(self) -> (&'static [State], State) {
        match self {
            Self::Confirm => (&[State::Reserved], State::Confirmed),
            Self::Void => (&[State::Reserved], State::Voided),
            Self::Retry => (&[State::Dead, State::Pending], State::Pending),
            Self::Abandon => (&[State::Dead, State::Pending], State::Abandoned),
        }
    }
}

/// What came of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It is so now, or was already.
    Done(Document),
    /// It is in a state in which it cannot be decided so, or a reservation's time is over.
    Refused(Document),
    /// A try is under way, and may deliver it. Its claim ends when the document is due.
    UnderWay(Document),
    /// There is no such document.
    Unknown,
}

impl Decided {
    /// What came of a decision about a document, as it is afterwards. Of a pending one only a try that is under way
    /// keeps it from being abandoned.
    pub fn of(document: Document, decision: Decision, is_so: bool) -> Self {
        match (decision, document.state) {
            _ if is_so => Self::Done(document),
            (Decision::Abandon, State::Pending) => Self::UnderWay(document),
            _ => Self::Refused(document),
        }
    }
}

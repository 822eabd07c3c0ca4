//! What is asked of the outbox: which documents, who delivers them, what became of a try, what a person decides.

use std::time::Duration;

use uuid::Uuid;

use super::{Delivery, Document, State};
use crate::scope::Place;
use crate::series::SeriesName;

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

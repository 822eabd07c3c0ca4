//! A document as a store keeps it.

use std::fmt;

use bates_pattern::Position;
use jiff::Timestamp;
use uuid::Uuid;

use crate::gap::Reason;
use crate::scope::Place;

/// A document, or a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its id for ever, also for whoever it is delivered to: the same for every try.
    pub event: Uuid,
    /// Where its number is from.
    pub place: Place,
    /// The position of its number.
    pub position: Position,
    /// Its number.
    pub number: Box<str>,
    /// What became of it.
    pub state: State,
    /// How often its delivery was begun.
    pub tries: u32,
    /// Why the last try failed.
    pub last_error: Option<Box<str>>,
    /// When it was numbered.
    pub created: Timestamp,
    /// When its state, or the outcome of a try, was last written.
    pub updated: Timestamp,
    /// While it is pending, when the next try is due, or the claim of the one under way ends; while it is reserved, when
    /// it is voided.
    pub due: Option<Timestamp>,
    /// Whether a try may have reached the sink although its outcome is not known: its claim ended before anyone settled
    /// it, or the sink did not answer.
    pub in_doubt: bool,
}

/// What became of a document or a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// It will be delivered.
    Pending,
    /// It was.
    Delivered,
    /// All tries failed; somebody has to decide.
    Dead,
    /// Somebody decided that it is not delivered.
    Abandoned,
    /// A number whose document somebody else saves.
    Reserved,
    /// It was saved.
    Confirmed,
    /// It was not, or not in time.
    Voided,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Delivered,
        Self::Dead,
        Self::Abandoned,
        Self::Reserved,
        Self::Confirmed,
        Self::Voided,
    ];

    /// As users and stores write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Abandoned => "abandoned",
            Self::Reserved => "reserved",
            Self::Confirmed => "confirmed",
            Self::Voided => "voided",
        }
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Why nobody has the number of a document in this state, if nobody has.
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Dead => Some(Reason::OutboxDlq),
            Self::Abandoned => Some(Reason::Abandoned),
            Self::Voided => Some(Reason::Voided),
            Self::Pending | Self::Delivered | Self::Reserved | Self::Confirmed => None,
        }
    }

    /// The state in which a document that is in this one is removed at last: what its idempotency key then stands for.
    #[must_use]
    pub const fn pruned_as(self) -> Self {
        match self {
            Self::Reserved | Self::Confirmed | Self::Voided => Self::Confirmed,
            Self::Pending | Self::Delivered | Self::Dead | Self::Abandoned => Self::Delivered,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

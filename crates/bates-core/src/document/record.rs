//! A document as a store keeps it.

use bates_pattern::Position;
use jiff::Timestamp;
use uuid::Uuid;

use crate::gap::GapReason;
use crate::lease::LeaseOwner;
use crate::named::named;
use crate::scope::ScopeId;

/// A document or a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The same for every attempt, also at the sink.
    pub id: Uuid,
    pub scope_id: ScopeId,
    pub position: Position,
    pub number: Box<str>,
    pub state: DocumentState,
    pub attempts: u32,
    pub last_error: Option<Box<str>>,
    pub created: Timestamp,
    /// When its state, or the outcome of an attempt, was last written.
    pub updated: Timestamp,
    /// Pending: when the next attempt is due, or the claim of the current one ends. Reserved: when it is voided.
    pub due: Option<Timestamp>,
    /// Whether an attempt may have reached the sink: its claim ended unsettled, or the sink did not answer.
    pub in_doubt: bool,
    /// The caller that had it numbered: the name of a token, or an address.
    pub caller: Box<str>,
}

impl Document {
    /// Whether a caller may end the reservation: the token that made it, or one that owns all.
    pub fn is_of(&self, owner: &LeaseOwner) -> bool {
        owner.caller().is_none_or(|caller| *caller == *self.caller)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DocumentState {
    Pending,
    Delivered,
    /// All attempts failed; an operator has to decide.
    Dead,
    /// An operator decided not to deliver it.
    Abandoned,
    /// The caller saves the document itself.
    Reserved,
    /// The reserved document was saved.
    Confirmed,
    /// The reserved document was not saved, or not in time.
    Voided,
}

named!(DocumentState {
    Pending = "pending",
    Delivered = "delivered",
    Dead = "dead",
    Abandoned = "abandoned",
    Reserved = "reserved",
    Confirmed = "confirmed",
    Voided = "voided",
});

impl DocumentState {
    /// Why the number of a document in this state is a gap, if it is one. The sink may have taken a document in doubt.
    pub const fn gap_reason(self, in_doubt: bool) -> Option<GapReason> {
        match self {
            Self::Dead | Self::Abandoned if in_doubt => Some(GapReason::DeliveryUnknown),
            Self::Dead => Some(GapReason::OutboxDlq),
            Self::Abandoned => Some(GapReason::Abandoned),
            Self::Voided => Some(GapReason::Voided),
            Self::Pending | Self::Delivered | Self::Reserved | Self::Confirmed => None,
        }
    }

    /// The state of [`PruneGroup::Delivered`](super::PruneGroup::Delivered) in which a document that began in this state
    /// is removed. Its idempotency key answers with it afterwards, unless the document was removed in another state.
    #[must_use]
    pub const fn pruned_as(self) -> Self {
        match self {
            Self::Reserved | Self::Confirmed | Self::Voided => Self::Confirmed,
            Self::Pending | Self::Delivered | Self::Dead | Self::Abandoned => Self::Delivered,
        }
    }
}

//! What is asked of the outbox: which documents, who delivers them, what became of a try, what a person decides.

use std::time::Duration;

use uuid::Uuid;

use super::{Delivery, Document, State};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// Which documents. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The one with this id.
    pub event: Option<Uuid>,
    /// Those of a series.
    pub series: Option<SeriesName>,
    /// Those of a scope of any series.
    pub scope: Option<ScopeKey>,
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

/// What is written of a claim that is settled. The claim ends with it, and what was delivered needs no body any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled<'v> {
    /// The state of the document.
    pub state: State,
    /// After which time the next try is due.
    pub after: Option<Duration>,
    /// What went wrong.
    pub error: Option<&'v str>,
    /// Whether the sink may have taken the document although it was not settled as delivered. Once so, it stays so.
    pub in_doubt: bool,
}

impl Verdict {
    /// What is written of it, if the document is pending, claimed, and this was its last try.
    pub fn settled(&self) -> Settled<'_> {
        let (state, after, error) = match self {
            Self::Delivered => (State::Delivered, None, None),
            Self::Again(after, error) | Self::Unanswered(Some(after), error) => {
                (State::Pending, Some(*after), Some(&**error))
            }
            Self::Dead(error) | Self::Unanswered(None, error) => (State::Dead, None, Some(&**error)),
        };
        Settled { state, after, error, in_doubt: matches!(self, Self::Unanswered(..)) }
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

/// How a decision changes a document, as a store maps it to one statement. A claim ends with it: a try that is under way
/// leaves the document in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionRule {
    /// The states in which it can be made.
    pub from: &'static [State],
    /// The state that it leads to.
    pub to: State,
    /// When it can be made.
    pub when: DecisionTime,
    /// Whether the document is due at once, and its tries begin again. They do not while one is under way: its verdict must
    /// not be taken for that of the next one. Otherwise nothing is due any more.
    pub tries_again: bool,
}

/// When a decision can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionTime {
    /// At any time.
    Always,
    /// Before the document is due: a reservation whose time is over cannot be confirmed, even if it was not voided yet.
    BeforeDue,
    /// Unless a claim lasts: a try that is under way may deliver the document.
    Unclaimed,
}

impl Decision {
    /// What it does.
    pub const fn rule(self) -> DecisionRule {
        let (from, to, when): (&[_], _, _) = match self {
            Self::Confirm => (&[State::Reserved], State::Confirmed, DecisionTime::BeforeDue),
            Self::Void => (&[State::Reserved], State::Voided, DecisionTime::Always),
            Self::Retry => (&[State::Dead, State::Pending], State::Pending, DecisionTime::Always),
            Self::Abandon => (&[State::Dead, State::Pending], State::Abandoned, DecisionTime::Unclaimed),
        };
        DecisionRule { from, to, when, tries_again: matches!(self, Self::Retry) }
    }

    /// What came of it: the document as it is afterwards, if there is one, and whether the decision changed it.
    pub fn decided(self, document: Option<Document>, is_changed: bool) -> Decided {
        let rule = self.rule();
        match document {
            None => Decided::Unknown,
            // Twice is once.
            Some(document) if is_changed || document.state == rule.to && !rule.tries_again => {
                Decided::Done(document)
            }
            // Of a pending one only a try that is under way keeps it from being abandoned.
            Some(document) if self == Self::Abandon && document.state == State::Pending => {
                Decided::UnderWay(document)
            }
            Some(document) => Decided::Refused(document),
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use bates_pattern::Position;

    use super::*;
    use crate::scope::Place;

    fn document(state: State) -> Document {
        Document {
            event: Uuid::nil(),
            place: Place { series: "document".parse().unwrap(), scope: ScopeKey::from_store("") },
            position: Position::MIN,
            number: "1".into(),
            state,
            tries: 0,
            last_error: None,
            created: Timestamp::UNIX_EPOCH,
            updated: Timestamp::UNIX_EPOCH,
            due: None,
            in_doubt: false,
        }
    }

    #[test]
    fn a_decision_made_twice_is_made_once_and_a_retry_is_made_each_time() {
        for decision in [Decision::Confirm, Decision::Void, Decision::Abandon] {
            let after = document(decision.rule().to);
            assert_eq!(decision.decided(Some(after.clone()), false), Decided::Done(after), "{decision:?}");
        }
        let (pending, dead) = (document(State::Pending), document(State::Dead));
        assert_eq!(Decision::Retry.decided(Some(pending.clone()), true), Decided::Done(pending.clone()));
        assert_eq!(Decision::Retry.decided(Some(pending.clone()), false), Decided::Refused(pending.clone()));
        assert_eq!(Decision::Abandon.decided(Some(pending.clone()), false), Decided::UnderWay(pending));
        assert_eq!(Decision::Confirm.decided(Some(dead.clone()), false), Decided::Refused(dead));
        assert_eq!(Decision::Void.decided(None, false), Decided::Unknown);
    }

    #[test]
    fn only_a_sink_that_did_not_answer_leaves_doubt_and_only_the_last_try_kills() {
        let (wait, why) = (Duration::from_secs(1), || "down".into());
        for (verdict, state, after, in_doubt) in [
            (Verdict::Delivered, State::Delivered, None, false),
            (Verdict::Again(wait, why()), State::Pending, Some(wait), false),
            (Verdict::Dead(why()), State::Dead, None, false),
            (Verdict::Unanswered(Some(wait), why()), State::Pending, Some(wait), true),
            (Verdict::Unanswered(None, why()), State::Dead, None, true),
        ] {
            let error = (state != State::Delivered).then_some("down");
            assert_eq!(verdict.settled(), Settled { state, after, error, in_doubt });
        }
    }
}

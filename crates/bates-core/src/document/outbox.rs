//! Requests to the outbox: filters, claims, verdicts on tries, and decisions of operators.

use std::time::Duration;

use uuid::Uuid;

use super::{Delivery, Document, State};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// `None` matches every document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub event: Option<Uuid>,
    pub series: Option<SeriesName>,
    pub scope: Option<ScopeKey>,
    pub state: Option<State>,
    pub number: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub series: SeriesName,
    pub limit: usize,
    /// The claim ends with the document whose body reaches this size, so that a large one is claimed too.
    pub bytes: usize,
    pub lasts: Duration,
}

/// A claimed document; its verdict must name the attempt.
pub type Claimed = Delivery;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub event: Uuid,
    pub attempt: u32,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// It failed; the next try is due after this time.
    Again(Duration, Box<str>),
    Dead(Box<str>),
    /// The sink may have taken the document. The next try is due after this time; `None` if this was the last one.
    Unanswered(Option<Duration>, Box<str>),
}

/// What a store writes for a verdict. The claim ends, and a delivered document needs no body any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled<'v> {
    pub state: State,
    /// When the next try is due.
    pub after: Option<Duration>,
    pub error: Option<&'v str>,
    /// Whether the sink may have taken the document without answering. Once set, it stays.
    pub in_doubt: bool,
}

impl Verdict {
    /// For a document that is pending, claimed, and whose latest try this was.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The document of a reservation was saved.
    Confirm,
    /// The document of a reservation will not be saved.
    Void,
    /// Deliver a dead document, or a pending one at once. Its tries begin again, unless one is under way: that one counts
    /// no more, and the next has another number.
    Retry,
    /// Do not deliver a pending or dead document. Refused while a try is under way, which may deliver it.
    Abandon,
}

/// How a decision changes a document, in one statement. Its claim ends: a try under way leaves the document in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionRule {
    pub from: &'static [State],
    pub to: State,
    pub when: DecisionTime,
    /// Whether the document is due at once and its tries begin again; otherwise nothing is due any more. Tries do not begin
    /// again while one is under way: its verdict must not count for the next one.
    pub tries_again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionTime {
    Always,
    /// An expired reservation cannot be confirmed, even if it was not voided yet.
    BeforeDue,
    /// A try that is under way may deliver the document.
    Unclaimed,
}

impl Decision {
    pub const fn rule(self) -> DecisionRule {
        let (from, to, when): (&[_], _, _) = match self {
            Self::Confirm => (&[State::Reserved], State::Confirmed, DecisionTime::BeforeDue),
            Self::Void => (&[State::Reserved], State::Voided, DecisionTime::Always),
            Self::Retry => (&[State::Dead, State::Pending], State::Pending, DecisionTime::Always),
            Self::Abandon => (&[State::Dead, State::Pending], State::Abandoned, DecisionTime::Unclaimed),
        };
        DecisionRule { from, to, when, tries_again: matches!(self, Self::Retry) }
    }

    /// `document` is as it is afterwards; `is_changed` says whether the decision changed it.
    pub fn decided(self, document: Option<Document>, is_changed: bool) -> Decided {
        let rule = self.rule();
        match document {
            None => Decided::Unknown,
            // A decision made twice.
            Some(document) if is_changed || document.state == rule.to && !rule.tries_again => {
                Decided::Done(document)
            }
            // Only a try that is under way keeps a pending document from being abandoned.
            Some(document) if self == Self::Abandon && document.state == State::Pending => {
                Decided::UnderWay(document)
            }
            Some(document) => Decided::Refused(document),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    Done(Document),
    /// Its state does not allow the decision, or the reservation has expired.
    Refused(Document),
    /// A try is under way, and may deliver it. Its claim ends when `due` is reached.
    UnderWay(Document),
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

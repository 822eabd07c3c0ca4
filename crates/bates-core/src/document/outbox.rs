//! Requests to the outbox: filters, claims, verdicts on attempts, and actions of operators.

use std::time::Duration;

use uuid::Uuid;

use super::{Delivery, Document, DocumentState};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// `None` matches every document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    pub document_id: Option<Uuid>,
    pub series: Option<SeriesName>,
    pub scope: Option<ScopeKey>,
    pub state: Option<DocumentState>,
    pub number: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    pub series: SeriesName,
    pub limit: usize,
    /// The claim ends with the document whose body reaches this size, so that a large one is claimed too.
    pub bytes: usize,
    pub ttl: Duration,
}

/// A claimed document; its verdict must name the attempt.
pub type Claimed = Delivery;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub document_id: Uuid,
    pub attempt: u32,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// It failed; the next attempt is due after this time.
    RetryAfter(Duration, Box<str>),
    Dead(Box<str>),
    /// The sink may have taken the document. The next attempt is due after this time; `None` if this was the last one.
    Unanswered(Option<Duration>, Box<str>),
}

/// The changes that a store writes for a verdict. The claim ends, and a delivered document needs no body any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictChange<'v> {
    pub state: DocumentState,
    /// When the next attempt is due.
    pub after: Option<Duration>,
    pub error: Option<&'v str>,
    /// Whether the sink may have taken the document without answering. Once set, it stays.
    pub in_doubt: bool,
}

impl Verdict {
    /// For a pending, claimed document, and its latest attempt.
    pub fn change(&self) -> VerdictChange<'_> {
        let (state, after, error) = match self {
            Self::Delivered => (DocumentState::Delivered, None, None),
            Self::RetryAfter(after, error) | Self::Unanswered(Some(after), error) => {
                (DocumentState::Pending, Some(*after), Some(&**error))
            }
            Self::Dead(error) | Self::Unanswered(None, error) => (DocumentState::Dead, None, Some(&**error)),
        };
        VerdictChange { state, after, error, in_doubt: matches!(self, Self::Unanswered(..)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentAction {
    /// The document of a reservation was saved.
    Confirm,
    /// The document of a reservation will not be saved.
    Void,
    /// Deliver a dead document, or a pending one at once. Its attempts start from 1 again, unless one is under way: that
    /// one no longer counts, and the next has another number.
    Retry,
    /// Do not deliver a pending or dead document. Refused while an attempt is under way, which may deliver it.
    Abandon,
}

/// How an action changes a document, in one statement. Its claim ends: an attempt under way leaves it in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionRule {
    pub from: &'static [DocumentState],
    pub to: DocumentState,
    pub condition: ActionCondition,
    /// Whether the document is due at once and its attempts start again; otherwise nothing is due any more. They do not
    /// start again while one is under way: its verdict must not count for the next one.
    pub restarts_attempts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionCondition {
    Always,
    /// An expired reservation cannot be confirmed, even if it was not voided yet.
    BeforeDue,
    /// An attempt that is under way may deliver the document.
    Unclaimed,
}

impl DocumentAction {
    pub const fn rule(self) -> ActionRule {
        use {ActionCondition as If, DocumentState as State};
        let (from, to, condition): (&[State], _, _) = match self {
            Self::Confirm => (&[State::Reserved], State::Confirmed, If::BeforeDue),
            Self::Void => (&[State::Reserved], State::Voided, If::Always),
            Self::Retry => (&[State::Dead, State::Pending], State::Pending, If::Always),
            Self::Abandon => (&[State::Dead, State::Pending], State::Abandoned, If::Unclaimed),
        };
        ActionRule { from, to, condition, restarts_attempts: matches!(self, Self::Retry) }
    }

    /// `document` is the document after the action; `is_changed` says whether the action changed it.
    pub fn outcome(self, document: Option<Document>, is_changed: bool) -> ActionOutcome {
        let rule = self.rule();
        match document {
            None => ActionOutcome::Unknown,
            // The same action came before.
            Some(document) if is_changed || document.state == rule.to && !rule.restarts_attempts => {
                ActionOutcome::Done(document)
            }
            // Only an attempt under way keeps a pending document from being abandoned.
            Some(document) if self == Self::Abandon && document.state == DocumentState::Pending => {
                ActionOutcome::UnderWay(document)
            }
            Some(document) => ActionOutcome::Refused(document),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    Done(Document),
    /// Its state does not allow the action, or the reservation has expired.
    Refused(Document),
    /// An attempt is under way and may deliver it. Its claim ends when `due` is reached.
    UnderWay(Document),
    Unknown,
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use bates_pattern::Position;

    use super::*;
    use crate::scope::ScopeId;

    fn document(state: DocumentState) -> Document {
        Document {
            id: Uuid::nil(),
            scope_id: ScopeId { series: "document".parse().unwrap(), scope: ScopeKey::from_store("") },
            position: Position::MIN,
            number: "1".into(),
            state,
            attempts: 0,
            last_error: None,
            created: Timestamp::UNIX_EPOCH,
            updated: Timestamp::UNIX_EPOCH,
            due: None,
            in_doubt: false,
        }
    }

    #[test]
    fn a_repeated_action_is_done_already_but_a_retry_counts_each_time() {
        use {ActionOutcome as Outcome, DocumentAction as Action};
        for action in [Action::Confirm, Action::Void, Action::Abandon] {
            let after = || document(action.rule().to);
            assert_eq!(action.outcome(Some(after()), false), Outcome::Done(after()), "{action:?}");
        }
        let (pending, dead) = (|| document(DocumentState::Pending), || document(DocumentState::Dead));
        assert_eq!(Action::Retry.outcome(Some(pending()), true), Outcome::Done(pending()));
        assert_eq!(Action::Retry.outcome(Some(pending()), false), Outcome::Refused(pending()));
        assert_eq!(Action::Abandon.outcome(Some(pending()), false), Outcome::UnderWay(pending()));
        assert_eq!(Action::Confirm.outcome(Some(dead()), false), Outcome::Refused(dead()));
        assert_eq!(Action::Void.outcome(None, false), Outcome::Unknown);
    }

    #[test]
    fn only_a_silent_sink_leaves_doubt_and_only_the_last_attempt_kills() {
        let (wait, error) = (Duration::from_secs(1), || "down".into());
        for (verdict, state, after, in_doubt) in [
            (Verdict::Delivered, DocumentState::Delivered, None, false),
            (Verdict::RetryAfter(wait, error()), DocumentState::Pending, Some(wait), false),
            (Verdict::Dead(error()), DocumentState::Dead, None, false),
            (Verdict::Unanswered(Some(wait), error()), DocumentState::Pending, Some(wait), true),
            (Verdict::Unanswered(None, error()), DocumentState::Dead, None, true),
        ] {
            let error = (state != DocumentState::Delivered).then_some("down");
            assert_eq!(verdict.change(), VerdictChange { state, after, error, in_doubt });
        }
    }
}

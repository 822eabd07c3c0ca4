//! Requests to the outbox: filters, claims, the verdicts on delivery attempts, and the actions of callers and operators.

use std::time::Duration;

use uuid::Uuid;

use super::{Document, DocumentState};
use crate::caller::SeriesSet;
use crate::operation::Operation;
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// A field that is `None` matches every document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Only series in this set.
    pub among: SeriesSet,
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
    /// Claim no more documents once their bodies have this many bytes. One document is claimed even if it is larger.
    pub stop_at_bytes: usize,
    pub ttl: Duration,
}

/// Ends a claim with the verdict on its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub document_id: Uuid,
    pub attempt: u32,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// The attempt failed; the next one is due after this time.
    RetryAfter(Duration, Box<str>),
    /// The last attempt failed.
    Dead(Box<str>),
    /// The sink may have taken the document. The next attempt is due after this time; `None` if this was the last one.
    Unanswered(Option<Duration>, Box<str>),
}

/// The changes that a store writes for a verdict. It also ends the claim, and deletes the body of a delivered document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictChange<'v> {
    pub state: DocumentState,
    pub retry_after: Option<Duration>,
    pub error: Option<&'v str>,
    /// Whether the sink may have taken the document without answering. Once set, it stays.
    pub in_doubt: bool,
}

impl Verdict {
    /// Applies only to a document that is pending and claimed, and only if the attempt is its latest.
    pub fn change(&self) -> VerdictChange<'_> {
        let (state, retry_after, error) = match self {
            Self::Delivered => (DocumentState::Delivered, None, None),
            Self::RetryAfter(after, error) | Self::Unanswered(Some(after), error) => {
                (DocumentState::Pending, Some(*after), Some(&**error))
            }
            Self::Dead(error) | Self::Unanswered(None, error) => (DocumentState::Dead, None, Some(&**error)),
        };
        VerdictChange { state, retry_after, error, in_doubt: matches!(self, Self::Unanswered(..)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentAction {
    /// The document of a reservation was saved.
    Confirm,
    /// The document of a reservation will not be saved.
    Void,
    /// Deliver a dead or pending document now. Its attempts are counted from 1 again, unless one is under way: then the
    /// count goes on, so that the verdict on that attempt cannot settle the next one.
    Retry,
    /// Do not deliver a pending or dead document. Refused while an attempt is under way, which may deliver it.
    Abandon,
}

/// How an action changes a document. A store applies it in one SQL statement, which also ends a claim; a document that was
/// claimed is then in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionRule {
    pub from: &'static [DocumentState],
    pub to: DocumentState,
    pub condition: ActionCondition,
    /// If true, the document is due now, and its attempts are counted from 1 again unless one is under way. If false, it is
    /// never due again.
    pub restarts_attempts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionCondition {
    Always,
    /// An expired reservation cannot be confirmed, even if it was not voided yet.
    BeforeDue,
    /// Not while an attempt is under way, because it may deliver the document.
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

    /// The operation of an action on one document, which the action changed from `before`.
    pub fn operation_on_one(self, operation: Operation, before: &Document) -> Operation {
        let subject = format!("{} {}", before.number, before.id);
        let operation =
            operation.on(&subject).between(Some(before.state.name()), Some(self.rule().to.name()));
        Operation { series: Some(before.scope_id.series.clone()), ..operation }
    }

    /// The operation of an action that changed `count` documents.
    pub fn operation_on_all(self, operation: Operation, filter: &DocumentFilter, count: u64) -> Operation {
        let before = filter.state.map(DocumentState::name);
        operation.between(before, Some(&format!("{}: {count}", self.rule().to)))
    }

    /// `document` is the document as it is after the action, and `is_changed` whether the action changed it.
    pub fn outcome(self, document: Option<Document>, is_changed: bool) -> ActionOutcome {
        let rule = self.rule();
        match document {
            None => ActionOutcome::NotFound,
            // Also if an earlier, equal action had changed it.
            Some(document) if is_changed || document.state == rule.to && !rule.restarts_attempts => {
                ActionOutcome::Done(document)
            }
            // Only an attempt under way keeps a pending document from being abandoned.
            Some(document) if self == Self::Abandon && document.state == DocumentState::Pending => {
                ActionOutcome::AttemptUnderWay(document)
            }
            Some(document) => ActionOutcome::Refused(document),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// The document has the state that the action asks for.
    Done(Document),
    /// Its state does not allow the action, or the reservation has expired.
    Refused(Document),
    /// An attempt is under way and may deliver it. Its claim ends at `due`.
    AttemptUnderWay(Document),
    NotFound,
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
            caller: Box::default(),
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
        assert_eq!(Action::Abandon.outcome(Some(pending()), false), Outcome::AttemptUnderWay(pending()));
        assert_eq!(Action::Confirm.outcome(Some(dead()), false), Outcome::Refused(dead()));
        assert_eq!(Action::Void.outcome(None, false), Outcome::NotFound);
    }

    #[test]
    fn only_a_silent_sink_leaves_doubt_and_only_the_last_attempt_kills() {
        let (wait, error) = (Duration::from_secs(1), || "down".into());
        for (verdict, state, retry_after, in_doubt) in [
            (Verdict::Delivered, DocumentState::Delivered, None, false),
            (Verdict::RetryAfter(wait, error()), DocumentState::Pending, Some(wait), false),
            (Verdict::Dead(error()), DocumentState::Dead, None, false),
            (Verdict::Unanswered(Some(wait), error()), DocumentState::Pending, Some(wait), true),
            (Verdict::Unanswered(None, error()), DocumentState::Dead, None, true),
        ] {
            let error = (state != DocumentState::Delivered).then_some("down");
            assert_eq!(verdict.change(), VerdictChange { state, retry_after, error, in_doubt });
        }
    }
}

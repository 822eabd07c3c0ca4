//! Numbers documents and reservations, and applies actions to them.
//!
//! A document takes its number from the cursor, past all ranges that processes hold in memory. In an ordered series, a later
//! caller could then get a smaller number from memory: so once a process has numbered a document of such a series, it holds
//! no range of the series in memory until it restarts.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::depth::{self, DEPTH_MAX};
use super::{
    ActionOutcome, AssignError, AssignRequest, Assignment, Document, DocumentAction, DocumentContent,
    DocumentFilter, DocumentRetention, DocumentState, Idempotency, PruneGroup,
};
use crate::audit::{Actor, Channel};
use crate::code::ErrorCode;
use crate::error::IssueError;
use crate::machine::{Machine, REJECTED_MAX};
use crate::operation::OperationKind;
use crate::scope::{ScopeError, ScopeId, ScopeParams};
use crate::series::{OpenScope, Promise, SeriesEntry, SeriesName};
use crate::store::{Store, StoreResult};

const PRUNE_BATCH: usize = 10_000;

/// A search gives up after this many batches of the store. Each passes some rejected positions, and all its requests share them.
const SEARCHES_MAX: usize = 10_000;

/// Why a document got no number. Nothing was written, unless the store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error("series {0:?} has no sink: its documents could not be delivered")]
    NoSink(Box<str>),
    #[error("idempotency key {0:?} was used in this series for another request")]
    KeyReused(Box<str>),
    #[error("idempotency key {0:?} was not used in this series before")]
    KeyUnused(Box<str>),
    /// Another attempt fails in the same way.
    #[error("the idempotency key cannot be kept: {0}")]
    BadKey(Box<str>),
    #[error("the document is nested {depth} levels deep; the limit is {DEPTH_MAX}")]
    TooDeep { depth: usize },
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected { positions: u64 },
}

type AssignResult = Result<Assignment, DocumentError>;

impl DocumentError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Scope(refused) => refused.code(),
            Self::Issue(error) => error.code(),
            Self::NoSink(_) => ErrorCode::NO_SINK,
            Self::KeyReused(_) => ErrorCode::KEY_REUSED,
            Self::BadKey(_) | Self::KeyUnused(_) => ErrorCode::BAD_ARGUMENTS,
            Self::TooDeep { .. } => ErrorCode::BAD_DOCUMENT,
            Self::AllRejected { .. } => ErrorCode::ALL_REJECTED,
        }
    }
}

/// The arguments of [`Machine::assign`] besides the series.
struct AssignArgs<'a> {
    params: ScopeParams<'a>,
    content: DocumentContent,
    idempotency: Option<Idempotency>,
    only_repeats: bool,
    caller: &'a str,
}

impl<S: Store> Machine<S> {
    /// Numbers a document, or reserves a number.
    pub async fn assign(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        content: DocumentContent,
        idempotency: Option<Idempotency>,
        caller: &str,
    ) -> AssignResult {
        self.assign_args(entry, AssignArgs { params, content, idempotency, only_repeats: false, caller })
            .await
    }

    /// The number that a request with this idempotency key got earlier. Numbers nothing.
    pub async fn find_assignment(
        &self,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
        content: DocumentContent,
        idempotency: Idempotency,
        caller: &str,
    ) -> Result<Option<Assignment>, DocumentError> {
        let idempotency = Some(idempotency);
        let args = AssignArgs { params, content, idempotency, only_repeats: true, caller };
        match self.assign_args(entry, args).await {
            Ok(assignment) => Ok(Some(assignment)),
            Err(DocumentError::KeyUnused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn assign_args(&self, entry: &SeriesEntry, args: AssignArgs<'_>) -> AssignResult {
        if !entry.series.is_retired() {
            let assigned = self.assign_in(entry, args).await;
            if matches!(&assigned, Err(DocumentError::Issue(error)) if error.is_outdated()) {
                // The caller should try again: the next call knows the current promise of the series.
                let _ = Box::pin(self.sync_series()).await;
            }
            return assigned;
        }
        // The series was changed since the caller looked it up: assign with its current entry.
        match self.replacement_of(&entry.series).await {
            Some(current) => Box::pin(self.assign_in(&current, args)).await,
            None => {
                let scope = self.open_scope(entry, args.params)?;
                Err(self.dispenser.refusal(&entry.series, scope.key()).into())
            }
        }
    }

    async fn assign_in(&self, entry: &SeriesEntry, args: AssignArgs<'_>) -> AssignResult {
        let AssignArgs { params, content, idempotency, only_repeats, caller } = args;
        let is_document = matches!(content, DocumentContent::Document(_));
        if is_document && !entry.spec.has_sink {
            return Err(DocumentError::NoSink(entry.series.name().as_str().into()));
        }
        depth::check(&content)?;
        let OpenScope { scope, scope_id, .. } = self.open_scope(entry, params)?;
        self.prepare_to_assign(entry, &scope_id).await?;
        let _permit = self.dispenser.permit(&scope_id)?;
        let key = idempotency.as_ref().map(|idempotency| idempotency.key.clone());
        let channel = if is_document { Channel::Document } else { Channel::Reservation };
        let request = AssignRequest {
            scope_id: scope_id.clone(),
            start: entry.series.start().value(),
            end: entry.series.end(),
            scopes_max: entry.series.limits().scopes_max,
            promise: Some(entry.series.promise()),
            scope: Arc::new(scope),
            document_id: self.runtime.new_id(),
            idempotency,
            only_repeats,
            content,
            caller: caller.into(),
            audit_stamp: self.document_stamp(entry, channel, caller),
        };
        let assignment = self.assign_searching(entry, request).await;
        entry.note_usage(&scope_id, &assignment);
        let assignment = assignment.map_err(|error| to_error(&scope_id, entry.series.end(), key, error))?;
        if assignment.is_new {
            entry.counts.add_issued(1);
            if is_document {
                entry.document_notify.notify_one();
            }
        }
        Ok(assignment)
    }

    /// Searches on where the rules rejected many positions in a row, each time in a later batch of the store.
    async fn assign_searching(
        &self,
        entry: &SeriesEntry,
        request: AssignRequest,
    ) -> Result<Assignment, AssignError> {
        if entry.spec.reject.is_empty() {
            return self.store().assign(request).await;
        }
        let mut rejected = 0;
        for _ in 0..SEARCHES_MAX {
            match self.store().assign(request.clone()).await {
                Err(AssignError::Rejected { positions }) => rejected += positions,
                answer => return answer,
            }
            if rejected >= REJECTED_MAX {
                break;
            }
        }
        Err(AssignError::Rejected { positions: rejected })
    }

    async fn prepare_to_assign(&self, entry: &SeriesEntry, scope_id: &ScopeId) -> Result<(), DocumentError> {
        if self.dispenser.is_closing() {
            return Err(self.dispenser.refusal(&entry.series, &scope_id.scope).into());
        }
        if entry.series.promise() == Promise::Ordered {
            self.dispenser.stop_caching(&entry.series).await;
        }
        Ok(())
    }

    pub async fn documents(
        &self,
        filter: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<Document>> {
        self.store().documents(filter, after, limit).await
    }

    pub async fn apply_action(
        &self,
        id: Uuid,
        action: DocumentAction,
        actor: Actor<'_>,
    ) -> StoreResult<ActionOutcome> {
        // The caller of a reservation ends it itself: that belongs to issuing.
        let kind = match action {
            DocumentAction::Confirm | DocumentAction::Void => None,
            DocumentAction::Retry => Some(OperationKind::DocumentRetried),
            DocumentAction::Abandon => Some(OperationKind::DocumentAbandoned),
        };
        let operation = kind.map(|kind| self.operation(actor, kind, None).on(&id.to_string()));
        let outcome = self.store().apply_action(id, action, operation).await?;
        if let (DocumentAction::Retry, ActionOutcome::Done(document)) = (action, &outcome) {
            self.notify_relays(|entry| entry.series.name() == &document.scope_id.series);
        }
        Ok(outcome)
    }

    /// Applies an action to all documents whose state allows it. Returns how many it changed.
    pub async fn apply_action_to_all(
        &self,
        of: DocumentFilter,
        action: DocumentAction,
        actor: Actor<'_>,
    ) -> StoreResult<u64> {
        let kind = if action == DocumentAction::Retry {
            OperationKind::DocumentsRetried
        } else {
            OperationKind::DocumentsAbandoned
        };
        let mut changed = 0;
        // One operation for each series: callers that see only some series see those on them.
        for series in self.series_with_documents(&of).await? {
            let operation = self.operation(actor, kind, Some(&series));
            let of = DocumentFilter { series: Some(series), ..of.clone() };
            changed += self.store().apply_action_to_all(of, action, Some(operation)).await?;
        }
        if action == DocumentAction::Retry {
            self.notify_relays(|_| true);
        }
        Ok(changed)
    }

    async fn series_with_documents(&self, of: &DocumentFilter) -> StoreResult<BTreeSet<SeriesName>> {
        if let Some(series) = &of.series {
            return Ok(BTreeSet::from([series.clone()]));
        }
        let counts = self.store().count_documents().await?.into_iter();
        let matches = |series: &SeriesName, state| {
            of.among.contains(series) && of.state.is_none_or(|wanted| wanted == state)
        };
        Ok(counts.filter(|(series, state, _)| matches(series, *state)).map(|(series, ..)| series).collect())
    }

    pub async fn count_documents(&self) -> StoreResult<Vec<(SeriesName, DocumentState, u64)>> {
        self.store().count_documents().await
    }

    /// Voids expired reservations, and removes documents that are older than their retention: at most 10,000 of each.
    /// Returns how many it voided and removed.
    pub async fn prune_documents(&self, retention: DocumentRetention) -> StoreResult<(u64, u64)> {
        let DocumentRetention { delivered, undelivered } = retention;
        let voided = self.store().expire_reservations(PRUNE_BATCH).await?;
        let mut removed = self.store().prune_documents(PruneGroup::Delivered, delivered, PRUNE_BATCH).await?;
        removed += self.store().prune_documents(PruneGroup::Undelivered, undelivered, PRUNE_BATCH).await?;
        Ok((voided, removed))
    }

    fn notify_relays(&self, is_affected: impl Fn(&SeriesEntry) -> bool) {
        for entry in self.registry().entries().filter(|entry| is_affected(entry)) {
            entry.document_notify.notify_one();
        }
    }
}

fn to_error(scope_id: &ScopeId, end: u64, key: Option<Box<str>>, error: AssignError) -> DocumentError {
    match error {
        AssignError::Grant(error) => IssueError::from_grant(scope_id, 1, end, error).into(),
        AssignError::KeyReused => DocumentError::KeyReused(key.unwrap_or_default()),
        AssignError::KeyUnused => DocumentError::KeyUnused(key.unwrap_or_default()),
        AssignError::BadKey(reason) => DocumentError::BadKey(reason),
        AssignError::Rejected { positions } => DocumentError::AllRejected { positions },
    }
}

//! Numbers for documents and reservations, and decisions about them.
//!
//! A document takes its number from the cursor, past the ranges held in memory. In an ordered series a later caller would
//! get a smaller number from memory: so from its first document on, an ordered series holds nothing in memory.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{
    ActionOutcome, AssignError, AssignRequest, Assignment, Document, DocumentAction, DocumentContent,
    DocumentFilter, DocumentState, Idempotency,
};
use crate::audit::Channel;
use crate::code::ErrorCode;
use crate::error::IssueError;
use crate::machine::Machine;
use crate::scope::{ScopeError, ScopeId, ScopeParams};
use crate::series::{OpenScope, Promise, SeriesEntry, SeriesName};
use crate::store::{Store, StoreResult};

const PRUNE_BATCH: usize = 10_000;

/// Nothing was written, unless the store failed.
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
    /// Permanent.
    #[error("the idempotency key cannot be kept: {0}")]
    BadKey(Box<str>),
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected { positions: u64 },
}

impl DocumentError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Scope(refused) => refused.code(),
            Self::Issue(error) => error.code(),
            Self::NoSink(_) => ErrorCode::NO_SINK,
            Self::KeyReused(_) => ErrorCode::KEY_REUSED,
            Self::BadKey(_) => ErrorCode::BAD_ARGUMENTS,
            Self::AllRejected { .. } => ErrorCode::ALL_REJECTED,
        }
    }
}

impl<S: Store> Machine<S> {
    /// Numbers a document, or reserves a number.
    pub async fn assign(
        &self,
        entry: &SeriesEntry,
        name: ScopeParams<'_>,
        content: DocumentContent,
        idempotency: Option<Idempotency>,
        who: &str,
    ) -> Result<Assignment, DocumentError> {
        if !entry.series.is_retired() {
            let numbered = self.number(entry, name, content, idempotency, who).await;
            if matches!(&numbered, Err(DocumentError::Issue(error)) if error.is_outdated()) {
                // The caller should try again: the next call finds the promise that the series has now.
                let _ = Box::pin(self.sync_series()).await;
            }
            return numbered;
        }
        // The series was changed since the caller found it: number with its current entry.
        match self.replacement_of(&entry.series).await {
            Some(current) => Box::pin(self.number(&current, name, content, idempotency, who)).await,
            None => Err(self.dispenser.refusal(&entry.series, self.open_scope(entry, name)?.key()).into()),
        }
    }

    async fn number(
        &self,
        entry: &SeriesEntry,
        name: ScopeParams<'_>,
        content: DocumentContent,
        idempotency: Option<Idempotency>,
        who: &str,
    ) -> Result<Assignment, DocumentError> {
        let is_document = matches!(content, DocumentContent::Document(_));
        if is_document && !entry.spec.has_sink {
            return Err(DocumentError::NoSink(entry.series.name().as_str().into()));
        }
        let OpenScope { scope, scope_id, .. } = self.open_scope(entry, name)?;
        if self.dispenser.is_closing() {
            return Err(self.dispenser.refusal(&entry.series, &scope_id.scope).into());
        }
        self.stop_caching(entry).await;
        let _permit = self.dispenser.permit(&scope_id)?;
        let key = idempotency.as_ref().map(|idempotency| idempotency.key.clone());
        let ask = AssignRequest {
            scope_id: scope_id.clone(),
            start: entry.series.start().value(),
            end: entry.series.end(),
            scopes_max: entry.series.limits().scopes_max,
            promise: Some(entry.series.promise()),
            scope: Arc::new(scope),
            document_id: self.runtime.new_id(),
            idempotency,
            content,
            audit_stamp: self.document_stamp(
                entry,
                if is_document { Channel::Document } else { Channel::Reservation },
                who,
            ),
        };
        let assignment = self.store().assign(ask).await;
        entry.note_usage(&scope_id, &assignment);
        let assignment = assignment.map_err(|error| refused(entry, &scope_id, key, error))?;
        if assignment.is_new {
            entry.note_numbered(is_document);
        }
        Ok(assignment)
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
        document_id: Uuid,
        decision: DocumentAction,
    ) -> StoreResult<ActionOutcome> {
        let decided = self.store().apply_action(document_id, decision).await?;
        if let (DocumentAction::Retry, ActionOutcome::Done(document)) = (decision, &decided) {
            self.notify_relays(|entry| entry.series.name() == &document.scope_id.series);
        }
        Ok(decided)
    }

    /// Decides about every document whose state allows it; answers how many.
    pub async fn apply_action_to_all(
        &self,
        filter: DocumentFilter,
        decision: DocumentAction,
    ) -> StoreResult<u64> {
        let decided = self.store().apply_action_to_all(filter, decision).await?;
        if decision == DocumentAction::Retry {
            self.notify_relays(|_| true);
        }
        Ok(decided)
    }

    pub async fn count_documents(&self) -> StoreResult<Vec<(SeriesName, DocumentState, u64)>> {
        self.store().count_documents().await
    }

    /// Voids expired reservations, and removes documents that were delivered or confirmed longer than `retention` ago: at
    /// most 10,000 of each. Answers how many.
    pub async fn prune_documents(&self, retention: Duration) -> StoreResult<(u64, u64)> {
        let voided = self.store().expire_reservations(PRUNE_BATCH).await?;
        Ok((voided, self.store().prune_documents(retention, PRUNE_BATCH).await?))
    }

    fn notify_relays(&self, of: impl Fn(&SeriesEntry) -> bool) {
        self.registry()
            .entries()
            .filter(|entry| of(entry))
            .for_each(|entry| entry.document_notify.notify_one());
    }

    async fn stop_caching(&self, entry: &SeriesEntry) {
        if entry.series.promise() == Promise::Ordered {
            self.dispenser.stop_caching(&entry.series).await;
        }
    }
}

impl SeriesEntry {
    fn note_numbered(&self, is_document: bool) {
        self.counts.add_issued(1);
        if is_document {
            self.document_notify.notify_one();
        }
    }
}

fn refused(
    entry: &SeriesEntry,
    scope_id: &ScopeId,
    key: Option<Box<str>>,
    error: AssignError,
) -> DocumentError {
    match error {
        AssignError::Grant(error) => IssueError::from_grant(scope_id, 1, entry.series.end(), error).into(),
        AssignError::KeyReused => DocumentError::KeyReused(key.unwrap_or_default()),
        AssignError::BadKey(reason) => DocumentError::BadKey(reason),
        AssignError::AllRejected { positions } => DocumentError::AllRejected { positions },
    }
}

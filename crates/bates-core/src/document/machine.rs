//! Numbers for documents and reservations, and decisions about them.
//!
//! A document takes its number from the cursor, past the ranges held in memory. In an ordered series a later caller would
//! get a smaller number from memory: so from its first document on, an ordered series holds nothing in memory.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{
    Assign, AssignError, Assigned, Content, Decided, Decision, Document, Filter, Idempotency, State,
};
use crate::audit::How;
use crate::code::Code;
use crate::error::IssueError;
use crate::machine::Machine;
use crate::scope::{Place, ScopeName, ScopeRefused};
use crate::series::{Entry, OpenScope, Promise, SeriesName};
use crate::store::{Store, StoreError};

const TIDY_AT_ONCE: usize = 10_000;

/// Nothing was written, unless the store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignRefused {
    #[error(transparent)]
    Scope(#[from] ScopeRefused),
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

impl AssignRefused {
    pub const fn code(&self) -> Code {
        match self {
            Self::Scope(refused) => refused.code(),
            Self::Issue(error) => error.code(),
            Self::NoSink(_) => Code::NO_SINK,
            Self::KeyReused(_) => Code::KEY_REUSED,
            Self::BadKey(_) => Code::BAD_ARGUMENTS,
            Self::AllRejected { .. } => Code::ALL_REJECTED,
        }
    }
}

impl<S: Store> Machine<S> {
    /// Numbers a document, or reserves a number.
    pub async fn assign(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        content: Content,
        idempotency: Option<Idempotency>,
        who: &str,
    ) -> Result<Assigned, AssignRefused> {
        if !entry.series.is_retired() {
            let numbered = self.number(entry, name, content, idempotency, who).await;
            if matches!(&numbered, Err(AssignRefused::Issue(error)) if error.is_outdated()) {
                // The caller should try again: the next call finds the promise that the series has now.
                let _ = Box::pin(self.follow()).await;
            }
            return numbered;
        }
        // The series was changed since the caller found it: number with its current entry.
        match self.in_place_of(&entry.series).await {
            Some(current) => Box::pin(self.number(&current, name, content, idempotency, who)).await,
            None => Err(self.dispenser.refusal(&entry.series, self.open_scope(entry, name)?.key()).into()),
        }
    }

    async fn number(
        &self,
        entry: &Entry,
        name: ScopeName<'_>,
        content: Content,
        idempotency: Option<Idempotency>,
        who: &str,
    ) -> Result<Assigned, AssignRefused> {
        let is_document = matches!(content, Content::Document(_));
        if is_document && !entry.spec.has_sink {
            return Err(AssignRefused::NoSink(entry.series.name().as_str().into()));
        }
        let OpenScope { scope, place, .. } = self.open_scope(entry, name)?;
        if self.dispenser.is_closing() {
            return Err(self.dispenser.refusal(&entry.series, &place.scope).into());
        }
        self.leave_memory(entry).await;
        let _permit = self.dispenser.permit(&place)?;
        let key = idempotency.as_ref().map(|idempotency| idempotency.key.clone());
        let ask = Assign {
            place: place.clone(),
            start: entry.series.start().value(),
            end: entry.series.end(),
            scopes_max: entry.series.limits().scopes_max,
            promise: Some(entry.series.promise()),
            scope: Arc::new(scope),
            event: self.runtime.new_id(),
            idempotency,
            content,
            audit: self.taking(entry, if is_document { How::Document } else { How::Reservation }, who),
        };
        let assigned = self.store().assign(ask).await;
        entry.note_reach(&place, &assigned);
        let assigned = assigned.map_err(|error| refused(entry, &place, key, error))?;
        if assigned.is_new {
            entry.note_numbered(is_document);
        }
        Ok(assigned)
    }

    pub async fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        self.store().documents(filter, after, limit).await
    }

    pub async fn decide(&self, event: Uuid, decision: Decision) -> Result<Decided, StoreError> {
        let decided = self.store().decide(event, decision).await?;
        if let (Decision::Retry, Decided::Done(document)) = (decision, &decided) {
            self.wake(|entry| entry.series.name() == &document.place.series);
        }
        Ok(decided)
    }

    /// Decides about every document whose state allows it; answers how many.
    pub async fn decide_all(&self, filter: Filter, decision: Decision) -> Result<u64, StoreError> {
        let decided = self.store().decide_all(filter, decision).await?;
        if decision == Decision::Retry {
            self.wake(|_| true);
        }
        Ok(decided)
    }

    pub async fn tally(&self) -> Result<Vec<(SeriesName, State, u64)>, StoreError> {
        self.store().tally().await
    }

    /// Voids expired reservations, and removes documents that were delivered or confirmed longer than `retention` ago: at
    /// most 10,000 of each. Answers how many.
    pub async fn tidy(&self, retention: Duration) -> Result<(u64, u64), StoreError> {
        let voided = self.store().expire(TIDY_AT_ONCE).await?;
        Ok((voided, self.store().prune(retention, TIDY_AT_ONCE).await?))
    }

    fn wake(&self, of: impl Fn(&Entry) -> bool) {
        self.registry().entries().filter(|entry| of(entry)).for_each(|entry| entry.documents.notify_one());
    }

    async fn leave_memory(&self, entry: &Entry) {
        if entry.series.promise() == Promise::Ordered {
            self.dispenser.leave_memory(&entry.series).await;
        }
    }
}

impl Entry {
    fn note_numbered(&self, is_document: bool) {
        self.counts.add_issued(1);
        if is_document {
            self.documents.notify_one();
        }
    }
}

fn refused(entry: &Entry, place: &Place, key: Option<Box<str>>, error: AssignError) -> AssignRefused {
    match error {
        AssignError::Grant(error) => IssueError::of_grant(place, 1, entry.series.end(), error).into(),
        AssignError::KeyReused => AssignRefused::KeyReused(key.unwrap_or_default()),
        AssignError::BadKey(reason) => AssignRefused::BadKey(reason),
        AssignError::AllRejected { positions } => AssignRefused::AllRejected { positions },
    }
}

//! Documents in the shared store. Numbers come from the batches; all else is one short transaction each, which may be
//! done twice. Times are those of the database alone. Must never wait for a cursor.

mod deliver;
pub(crate) mod list;

use std::borrow::Cow;
use std::time::Duration;

use bates_core::ledger::Request;
use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Claimed, Document, DocumentAction,
    DocumentFilter, DocumentState, DocumentStore, SeriesName, Settlement, StoreResult,
};
use uuid::Uuid;

use crate::PostgresStore;

/// A caller and its key together: more would not fit the index, and the statement would fail for the whole batch.
const KEY_BYTES_MAX: usize = 2_048;

/// A thousand years. PostgreSQL cannot add much more to a time.
const MILLIS_MAX: f64 = 1000.0 * 365.25 * 86_400_000.0;

impl DocumentStore for PostgresStore {
    async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError> {
        check(&assign)?;
        let series = assign.scope_id.series.clone();
        let asked = self.shared.ask(assign.scope_id.clone(), Request::Assign(Box::new(assign))).await;
        let assignment = asked?.into_assign()?;
        if assignment.is_new && assignment.state == DocumentState::Pending {
            self.notices.wrote(Some(&series));
        }
        Ok(assignment)
    }

    async fn documents(
        &self,
        filter: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<Document>> {
        let filter = &filter;
        self.done(|session| async move { Ok(list::documents(&session, filter, after, limit).await?) }).await
    }

    /// A claim whose answer was lost ends by itself.
    async fn claim(&self, claim: ClaimRequest) -> StoreResult<Vec<Claimed>> {
        let claim = &claim;
        self.done(|session| async move { deliver::claim(&session, claim).await }).await
    }

    /// A second try after a lost answer does not count what the first one settled.
    async fn settle_claims(&self, settled: Vec<Settlement>) -> StoreResult<u64> {
        let settled = &*settled;
        self.done(|session| async move { deliver::settle(&session, settled).await }).await
    }

    async fn apply_action(&self, document_id: Uuid, decision: DocumentAction) -> StoreResult<ActionOutcome> {
        let decided = self
            .done(|session| async move { deliver::decide(&session, document_id, decision).await })
            .await?;
        if let (DocumentAction::Retry, ActionOutcome::Done(document)) = (decision, &decided) {
            self.notices.wrote(Some(&document.scope_id.series));
        }
        Ok(decided)
    }

    async fn apply_action_to_all(
        &self,
        filter: DocumentFilter,
        decision: DocumentAction,
    ) -> StoreResult<u64> {
        let filter = &filter;
        let decided = self.done(|session| async move {
            session.transact(deliver::change(&session, filter, decision)).await
        });
        let decided = decided.await?;
        if decision == DocumentAction::Retry && decided > 0 {
            self.notices.wrote(filter.series.as_ref());
        }
        Ok(decided)
    }

    async fn expire_reservations(&self, limit: usize) -> StoreResult<u64> {
        self.done(|session| async move { deliver::expire(&session, limit).await }).await
    }

    async fn prune_documents(&self, age: Duration, limit: usize) -> StoreResult<u64> {
        self.done(|session| async move { deliver::prune(&session, age, limit).await }).await
    }

    async fn document_notice(&self, series: &SeriesName) {
        self.notices.woken(series).await;
    }

    fn receives_notices(&self) -> bool {
        self.notices.is_told()
    }

    async fn count_documents(&self) -> StoreResult<Vec<(SeriesName, DocumentState, u64)>> {
        self.done(|session| async move { Ok(list::tally(&session).await?) }).await
    }
}

/// Refuses a key that would fail the whole batch.
fn check(assign: &AssignRequest) -> Result<(), AssignError> {
    let Some(idempotency) = &assign.idempotency else { return Ok(()) };
    let (caller, key) = (&idempotency.caller, &idempotency.key);
    if caller.len() + key.len() > KEY_BYTES_MAX {
        let reason = format!("with the name of its caller it has more than {KEY_BYTES_MAX} bytes");
        return Err(AssignError::BadKey(reason.into()));
    }
    if caller.contains('\0') || key.contains('\0') {
        return Err(AssignError::BadKey("PostgreSQL keeps no NUL".into()));
    }
    Ok(())
}

pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).min(MILLIS_MAX)
}

pub(crate) fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// PostgreSQL keeps no NUL.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// PostgreSQL keeps no NUL, and JSON holds none but as an escape.
pub(crate) fn escaped(body: &str) -> Cow<'_, str> {
    if body.contains('\0') { body.replace('\0', "\\u0000").into() } else { body.into() }
}

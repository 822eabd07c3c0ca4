//! Documents in the shared store. `batch` numbers them; everything else is here: one short transaction each, which is safe
//! to run twice. All times are those of the database. Must never wait for the lock of a cursor.

mod deliver;
pub(crate) mod list;
mod prune;

use std::borrow::Cow;
use std::time::Duration;

use bates_core::ledger::Request;
use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Delivery, Document, DocumentAction,
    DocumentFilter, DocumentState, DocumentStore, Operation, PruneGroup, SeriesName, Settlement, StoreResult,
};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::get_u64;
use crate::operation;

/// Max bytes of a caller and its key together: more would not fit the index and would fail the whole batch.
const KEY_BYTES_MAX: usize = 2_048;

/// A thousand years. PostgreSQL cannot add much more to a time.
const MILLIS_MAX: f64 = 1000.0 * 365.25 * 86_400_000.0;

impl DocumentStore for PostgresStore {
    async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError> {
        check_key(&assign)?;
        let scope_id = assign.scope_id.clone();
        let request = Request::Assign(Box::new(assign));
        let assignment = self.shared.submit(scope_id.clone(), request).await?.into_assign()?;
        if assignment.is_new && assignment.state == DocumentState::Pending {
            self.notices.announce(Some(&scope_id.series));
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
        self.with_session(|session| async move { Ok(list::documents(&session, filter, after, limit).await?) })
            .await
    }

    /// If the answer is lost, the claim expires.
    async fn claim(&self, claim: ClaimRequest) -> StoreResult<Vec<Delivery>> {
        let claim = &claim;
        self.with_session(|session| async move { deliver::claim(&session, claim).await }).await
    }

    /// If the answer is lost and the call is repeated, the count lacks the claims that the first call settled.
    async fn settle_claims(&self, settlements: Vec<Settlement>) -> StoreResult<u64> {
        let settlements = &*settlements;
        self.with_session(|session| async move { deliver::settle(&session, settlements).await }).await
    }

    async fn apply_action(
        &self,
        document_id: Uuid,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> StoreResult<ActionOutcome> {
        let operation = operation.as_ref();
        let outcome = self
            .with_session(|session| async move {
                deliver::apply_to_one(&session, document_id, action, operation).await
            })
            .await?;
        if let (DocumentAction::Retry, ActionOutcome::Done(document)) = (action, &outcome) {
            self.notices.announce(Some(&document.scope_id.series));
        }
        Ok(outcome)
    }

    async fn apply_action_to_all(
        &self,
        filter: DocumentFilter,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> StoreResult<u64> {
        let (filter, operation) = (&filter, operation.as_ref());
        let changed = self.with_session(|session| async move {
            let apply = async {
                let changed = deliver::apply_action(&session, filter, action).await?;
                let operation = operation.filter(|_| changed > 0);
                let operation = operation.map(|it| action.operation_on_all(it.clone(), filter, changed));
                operation::append(&session, operation.as_ref()).await?;
                Ok(changed)
            };
            session.transact(apply).await
        });
        let changed = changed.await?;
        if action == DocumentAction::Retry && changed > 0 {
            self.notices.announce(filter.series.as_ref());
        }
        Ok(changed)
    }

    async fn expire_reservations(&self, limit: usize) -> StoreResult<u64> {
        self.with_session(|session| async move { deliver::expire(&session, limit).await }).await
    }

    async fn prune_documents(&self, group: PruneGroup, age: Duration, limit: usize) -> StoreResult<u64> {
        self.with_session(|session| async move { prune::remove(&session, group, age, limit).await }).await
    }

    async fn document_notice(&self, series: &SeriesName) {
        self.notices.wait(series).await;
    }

    fn receives_notices(&self) -> bool {
        self.notices.is_listening()
    }

    async fn count_documents(&self) -> StoreResult<Vec<(SeriesName, DocumentState, u64)>> {
        let sql = "SELECT series, state, count(*) FROM bates.document GROUP BY series, state";
        let rows = self.query(sql, &[]).await?;
        let mut counts: Vec<_> =
            rows.iter().map(|row| (list::name(row, 0), list::state(row, 1), get_u64(row, 2))).collect();
        counts.sort();
        Ok(counts)
    }
}

/// Refuses a key that PostgreSQL cannot store, because it would fail the whole batch.
fn check_key(assign: &AssignRequest) -> Result<(), AssignError> {
    let Some(idempotency) = &assign.idempotency else { return Ok(()) };
    let (caller, key) = (&idempotency.caller, &idempotency.key);
    if caller.len() + key.len() > KEY_BYTES_MAX {
        let reason = format!("together with the name of its caller it has more than {KEY_BYTES_MAX} bytes");
        return Err(AssignError::BadKey(reason.into()));
    }
    if caller.contains('\0') || key.contains('\0') {
        return Err(AssignError::BadKey("PostgreSQL cannot store NUL".into()));
    }
    Ok(())
}

pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).min(MILLIS_MAX)
}

pub(crate) fn to_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Replaces NUL, which PostgreSQL cannot store.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// Writes NUL, which PostgreSQL cannot store, as the escape that JSON has for it.
pub(crate) fn escape_nul(body: &str) -> Cow<'_, str> {
    if body.contains('\0') { body.replace('\0', "\\u0000").into() } else { body.into() }
}

//! Documents in the embedded store. The files below run SQL in a transaction of the writer, and never commit or answer.

pub(crate) mod assign;
pub(crate) mod deliver;
pub(crate) mod list;
mod prune;

use std::time::Duration;

use bates_core::ledger::Request;
use bates_core::{
    ActionOutcome, AssignError, AssignRequest, Assignment, ClaimRequest, Delivery, Document, DocumentAction,
    DocumentFilter, DocumentState, DocumentStore, Operation, PruneGroup, Runtime as _, SeriesName,
    Settlement, StoreResult, SystemRuntime,
};
use rusqlite::Transaction;
use uuid::Uuid;

use crate::SqliteStore;
use crate::error::WriteResult;
use crate::operation;

/// The clock of the outbox: the time when the store was opened plus the time elapsed since. It never jumps, because a jump
/// could make a claim last forever or void a reservation early.
#[derive(Clone, Copy)]
pub(crate) struct SteadyClock {
    base: i64,
    since: Duration,
}

impl SteadyClock {
    pub(crate) fn new() -> Self {
        Self { base: SystemRuntime.now().as_millisecond(), since: SystemRuntime.elapsed() }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.base + millis(SystemRuntime.elapsed().saturating_sub(self.since))
    }
}

/// At most 146 million years, so that adding it to a time does not overflow.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2)
}

impl SqliteStore {
    /// As [`Self::write_beside_cursors`], with the time.
    pub(crate) async fn write_now<T: Send + 'static>(
        &self,
        work: impl Fn(&Transaction<'_>, i64) -> WriteResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let now = self.clock.now();
        self.write_beside_cursors(move |transaction| work(transaction, now)).await
    }
}

impl DocumentStore for SqliteStore {
    async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError> {
        self.check_complete()?;
        self.submit(assign.scope_id.clone(), Request::Assign(Box::new(assign))).await?.into_assign()
    }

    async fn documents(
        &self,
        filter: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> StoreResult<Vec<Document>> {
        self.read(|connection| list::documents(connection, &filter, after, limit))
    }

    async fn claim(&self, claim: ClaimRequest) -> StoreResult<Vec<Delivery>> {
        self.write_now(move |transaction, now| Ok(deliver::claim(transaction, &claim, now)?)).await
    }

    async fn settle_claims(&self, settlements: Vec<Settlement>) -> StoreResult<u64> {
        self.write_now(move |transaction, now| Ok(deliver::settle(transaction, &settlements, now)?)).await
    }

    async fn apply_action(
        &self,
        document_id: Uuid,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> StoreResult<ActionOutcome> {
        let filter = DocumentFilter { document_id: Some(document_id), ..DocumentFilter::default() };
        self.write_now(move |transaction, now| {
            let document = || Ok::<_, rusqlite::Error>(list::documents(transaction, &filter, None, 1)?.pop());
            let before = if operation.is_some() { document()? } else { None };
            let changed = deliver::apply_action(transaction, &filter, action, now)?;
            if let (Some(operation), Some(before), 1) = (&operation, before, changed) {
                let operation = action.operation_on_one(operation.clone(), &before);
                operation::append(transaction, Some(&operation))?;
            }
            Ok(action.outcome(document()?, changed == 1))
        })
        .await
    }

    async fn apply_action_to_all(
        &self,
        filter: DocumentFilter,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> StoreResult<u64> {
        self.write_now(move |transaction, now| {
            let changed = deliver::apply_action(transaction, &filter, action, now)?;
            let operation = operation.as_ref().filter(|_| changed > 0);
            let operation = operation.map(|it| action.operation_on_all(it.clone(), &filter, changed));
            operation::append(transaction, operation.as_ref())?;
            Ok(changed)
        })
        .await
    }

    async fn expire_reservations(&self, limit: usize) -> StoreResult<u64> {
        self.write_now(move |transaction, now| Ok(deliver::expire(transaction, limit, now)?)).await
    }

    async fn prune_documents(&self, group: PruneGroup, age: Duration, limit: usize) -> StoreResult<u64> {
        let prune = move |transaction: &Transaction<'_>, now: i64| {
            Ok(prune::remove(transaction, group, now.saturating_sub(millis(age)), limit)?)
        };
        self.write_now(prune).await
    }

    async fn count_documents(&self) -> StoreResult<Vec<(SeriesName, DocumentState, u64)>> {
        self.read(list::count)
    }
}

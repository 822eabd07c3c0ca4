//! New documents and their idempotency keys.

use bates_core::ledger::{BatchState, IdempotencyKey, KeyState, KeyUse};
use bates_core::{Assignment, DocumentContent, DocumentState, Idempotency, NewDocument};
use rusqlite::{Result, Row, Transaction, params};
use uuid::Uuid;

use super::millis;
use crate::audit;
use crate::write::{execute, invalid_column, position, row, to_i64};

pub(crate) fn write(
    transaction: &Transaction<'_>,
    series_id: i64,
    document: NewDocument<'_>,
    now: i64,
) -> Result<()> {
    insert(transaction, series_id, document, now)?;
    if let Some(idempotency) = &document.request.idempotency {
        insert_key(transaction, series_id, document, idempotency)?;
    }
    match document.audit_record() {
        Some(record) => audit::insert(transaction, series_id, &record),
        None => Ok(()),
    }
}

pub(crate) fn key_states(transaction: &Transaction<'_>, batch: &BatchState) -> Result<Vec<KeyState>> {
    let sql = "SELECT k.digest, k.document_id, k.position, k.number, coalesce(d.state, r.state, k.pruned_as)
               FROM idempotency AS k LEFT JOIN document AS d ON d.document_id = k.document_id
                   LEFT JOIN removed AS r ON r.document_id = k.document_id
               WHERE k.series_id = (SELECT id FROM series WHERE name = ?) AND k.caller = ? AND k.key = ?";
    let read = |row: &Row<'_>| {
        let assignment = Assignment {
            document_id: Uuid::from_bytes(row.get(1)?),
            position: position(row.get(2)?),
            number: row.get::<_, String>(3)?.into(),
            state: DocumentState::from_name(row.get_ref(4)?.as_str()?).ok_or_else(|| invalid_column(4))?,
            is_new: false,
        };
        Ok(KeyState::Used(row.get(0)?, assignment))
    };
    let state = |(key, _): (&IdempotencyKey, KeyUse)| {
        let values = params![key.series.as_str(), key.caller, key.text];
        Ok(row(transaction, sql, values, read)?.unwrap_or(KeyState::New))
    };
    batch.first_uses().into_iter().map(state).collect()
}

fn insert(
    transaction: &Transaction<'_>,
    series_id: i64,
    NewDocument { request: assign, assignment }: NewDocument<'_>,
    now: i64,
) -> Result<()> {
    let (body, due) = match &assign.content {
        DocumentContent::Document(body) => (Some(body), now),
        DocumentContent::Reservation(duration) => (None, now.saturating_add(millis(*duration))),
    };
    let sql = "INSERT INTO document
                   (document_id, series_id, scope, position, number, state, body, created_at, updated_at, due_at,
                    caller)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (document_id, scope) = (assignment.document_id.as_bytes(), assign.scope_id.scope.as_str());
    let (position, number, state) =
        (to_i64(assignment.position.value()), &assignment.number, assignment.state.name());
    let caller = &assign.caller;
    let values = params![document_id, series_id, scope, position, number, state, body, now, now, due, caller];
    execute(transaction, sql, values).map(drop)
}

fn insert_key(
    transaction: &Transaction<'_>,
    series_id: i64,
    NewDocument { request: assign, assignment }: NewDocument<'_>,
    Idempotency { caller, key, digest }: &Idempotency,
) -> Result<()> {
    let sql =
        "INSERT INTO idempotency (series_id, caller, key, digest, document_id, scope, position, number, pruned_as)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (document_id, scope) = (assignment.document_id.as_bytes(), assign.scope_id.scope.as_str());
    let (position, number) = (to_i64(assignment.position.value()), &assignment.number);
    let pruned_as = assignment.state.pruned_as().name();
    let values = params![series_id, caller, key, digest, document_id, scope, position, number, pruned_as];
    execute(transaction, sql, values).map(drop)
}

//! Keys and documents of a batch: arrays in, one statement per table. Pure SQL: nothing here begins, commits or decides.

use std::borrow::Cow;

use bates_core::ledger::{IdempotencyKey, KeyState, KeyUse};
use bates_core::{Assignment, AuditRecord, DocumentContent, DocumentState, NewDocument};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use super::sql::{self, column, get_position, to_i64};
use crate::audit;
use crate::outbox::{escape_nul, millis, without_nul};
use crate::parameter::Parameter;
use crate::session::Session;

/// Inserts the new keys in their order, and returns how many. Waits for transactions that insert the same keys.
pub(crate) async fn insert_keys(
    session: &Session,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<u64, Error> {
    let sql = "INSERT INTO bates.idempotency (caller, series, key, digest, document_id, batch)
               SELECT caller, series, key, digest, document_id, $6
               FROM UNNEST($1, $2, $3, $4, $5) WITH ORDINALITY
                   AS requested (caller, series, key, digest, document_id, at)
               ORDER BY at ON CONFLICT (caller, series, key) DO NOTHING";
    execute_with_uses(session, sql, keys, batch).await
}

/// The state of each key, in their order. A separate statement, which sees the commits that the insert waited for.
pub(crate) async fn key_states(
    session: &Session,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<Vec<KeyState>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    // OFFSET 0 makes the planner read each key by the index. The document of a new key is not looked up.
    let sql =
        "SELECT stored.batch = $4, stored.digest, stored.document_id, coalesce(document.position, stored.position),
                   coalesce(document.number, stored.number), coalesce(document.state, stored.pruned_as)
               FROM UNNEST($1, $2, $3) WITH ORDINALITY AS requested (caller, series, key, at)
               CROSS JOIN LATERAL (
                   SELECT * FROM bates.idempotency AS k
                   WHERE k.caller = requested.caller AND k.series = requested.series AND k.key = requested.key
                   OFFSET 0
               ) AS stored
               LEFT JOIN LATERAL (
                   SELECT position, number, state FROM bates.document
                   WHERE document_id = CASE WHEN stored.batch <> $4 THEN stored.document_id END
                   OFFSET 0
               ) AS document ON true
               ORDER BY at";
    let columns = Columns::of(keys.iter().map(|(key, _)| *key));
    let rows = session.query(sql, &[&columns.callers, &columns.series, &columns.texts, &batch]).await?;
    Ok(rows
        .iter()
        .map(|row| if row.get(0) { KeyState::New } else { used_key(row).unwrap_or(KeyState::Lost) })
        .collect())
}

fn used_key(row: &Row) -> Option<KeyState> {
    let digest = row.get::<_, &[u8]>(1).try_into().ok()?;
    row.get::<_, Option<i64>>(3)?;
    let (number, state) = (row.get::<_, Option<&str>>(4)?, row.get::<_, Option<&str>>(5)?);
    let assignment = Assignment {
        document_id: row.get(2),
        position: get_position(row, 3),
        number: number.into(),
        state: DocumentState::from_name(state)?,
        is_new: false,
    };
    Some(KeyState::Used(digest, assignment))
}

/// Removes keys that the batch inserted and no request used.
pub(crate) async fn remove_keys(
    session: &Session,
    keys: &[&IdempotencyKey],
    batch: Uuid,
) -> Result<(), Error> {
    if keys.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM bates.idempotency AS stored USING UNNEST($1, $2, $3) AS unused (caller, series, key)
               WHERE stored.caller = unused.caller AND stored.series = unused.series AND stored.key = unused.key
               AND stored.batch = $4";
    let columns = Columns::of(keys.iter().copied());
    session.query(sql, &[&columns.callers, &columns.series, &columns.texts, &batch]).await.map(drop)
}

/// Changes keys that were inserted for one request of the batch and then used by another one.
pub(crate) async fn change_keys(
    session: &Session,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<(), Error> {
    let sql = "UPDATE bates.idempotency AS stored SET digest = reused.digest, document_id = reused.document_id
               FROM UNNEST($1, $2, $3, $4, $5) AS reused (caller, series, key, digest, document_id)
               WHERE stored.caller = reused.caller AND stored.series = reused.series AND stored.key = reused.key
               AND stored.batch = $6";
    execute_with_uses(session, sql, keys, batch).await.map(drop)
}

async fn execute_with_uses(
    session: &Session,
    sql: &str,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<u64, Error> {
    if keys.is_empty() {
        return Ok(0);
    }
    let Columns { callers, series, texts } = Columns::of(keys.iter().map(|(key, _)| *key));
    let digests = column(keys, |(_, key_use)| &key_use.digest[..]);
    let document_ids = column(keys, |(_, key_use)| key_use.document_id);
    session.execute(sql, &[&callers, &series, &texts, &digests, &document_ids, &batch]).await
}

#[derive(Default)]
struct Columns<'k> {
    callers: Vec<&'k str>,
    series: Vec<&'k str>,
    texts: Vec<&'k str>,
}

impl<'k> Columns<'k> {
    fn of(keys: impl Iterator<Item = &'k IdempotencyKey>) -> Self {
        let mut columns = Self::default();
        for IdempotencyKey { caller, series, text } in keys {
            columns.callers.push(caller);
            columns.series.push(series.as_str());
            columns.texts.push(text);
        }
        columns
    }
}

pub(crate) async fn write(session: &Session, documents: &[NewDocument<'_>]) -> Result<(), Error> {
    let records: Vec<AuditRecord> = documents.iter().filter_map(NewDocument::audit_record).collect();
    let records: Vec<&AuditRecord> = records.iter().collect();
    // Boxed, because few batches have records and all would carry its size.
    let recording = Box::pin(audit::insert(session, &records));
    let (written, recorded) = tokio::join!(biased; write_documents(session, documents), recording);
    written.and(recorded)
}

/// Times are those of the write, not of the transaction, which may have waited for locks.
async fn write_documents(session: &Session, documents: &[NewDocument<'_>]) -> Result<(), Error> {
    if documents.is_empty() {
        return Ok(());
    }
    let sql = "WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS now)
               INSERT INTO bates.document
                   (document_id, series, scope, position, number, state, body, created_at, updated_at, due_at,
                    caller)
               SELECT document_id, series, scope, position, number, state, body, now, now,
                   now + duration_ms * interval '1 millisecond', caller
               FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9)
                   AS new (document_id, series, scope, position, number, state, body, duration_ms, caller), moment";
    let document_ids = column(documents, |new| new.assignment.document_id);
    let (series, scopes) = sql::columns(documents.iter().map(|new| &new.request.scope_id));
    let positions = column(documents, |new| to_i64(new.assignment.position.value()));
    let numbers = column(documents, |new| &*new.assignment.number);
    let states = column(documents, |new| new.assignment.state.name());
    let (bodies, durations): (Vec<Option<Cow<'_, str>>>, Vec<f64>) =
        documents.iter().map(|new| body(&new.request.content)).unzip();
    let callers = column(documents, |new| without_nul(&new.request.caller));
    let parameters: [&dyn Parameter; 9] =
        [&document_ids, &series, &scopes, &positions, &numbers, &states, &bodies, &durations, &callers];
    session.query(sql, &parameters).await.map(drop)
}

/// The body of a document, or the milliseconds that a reservation lasts.
fn body(content: &DocumentContent) -> (Option<Cow<'_, str>>, f64) {
    match content {
        DocumentContent::Document(body) => (Some(escape_nul(body)), 0.0),
        DocumentContent::Reservation(duration) => (None, millis(*duration)),
    }
}

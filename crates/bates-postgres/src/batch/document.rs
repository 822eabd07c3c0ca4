//! Keys and documents of a batch: arrays in, one statement a table. Pure SQL: nothing here begins, commits or decides.

use std::borrow::Cow;

use bates_core::ledger::{IdempotencyKey, KeyState, KeyUse};
use bates_core::{Assignment, AuditRecord, DocumentContent, DocumentState, NewDocument};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use super::sql::{self, integer, position};
use crate::audit;
use crate::outbox::{escaped, millis};
use crate::parameter::Parameter;
use crate::session::Session;

/// Inserts the keys that are new, in their order, and answers how many; waits for transactions that insert the same keys.
pub(crate) async fn insert_keys(
    session: &Session,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<u64, Error> {
    let sql = "INSERT INTO bates.idempotency (caller, series, key, digest, document_id, batch)
               SELECT caller, series, key, digest, document_id, $6
               FROM UNNEST($1, $2, $3, $4, $5) WITH ORDINALITY
                   AS asked (caller, series, key, digest, document_id, at)
               ORDER BY at ON CONFLICT (caller, series, key) DO NOTHING";
    with_requests(session, sql, keys, batch).await
}

/// What is known of each key, in their order: a statement of its own, which sees what the insert waited for.
pub(crate) async fn known_keys(
    session: &Session,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<Vec<KeyState>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    // OFFSET 0 makes the planner read each key by the index. The document of a new key is not looked for.
    let sql =
        "SELECT found.batch = $4, found.digest, found.document_id, coalesce(document.position, found.position),
                   coalesce(document.number, found.number), coalesce(document.state, found.pruned_as)
               FROM UNNEST($1, $2, $3) WITH ORDINALITY AS asked (caller, series, key, at)
               CROSS JOIN LATERAL (
                   SELECT * FROM bates.idempotency AS known
                   WHERE known.caller = asked.caller AND known.series = asked.series AND known.key = asked.key
                   OFFSET 0
               ) AS found
               LEFT JOIN LATERAL (
                   SELECT position, number, state FROM bates.document
                   WHERE document_id = CASE WHEN found.batch <> $4 THEN found.document_id END
                   OFFSET 0
               ) AS document ON true
               ORDER BY at";
    let columns = Columns::of(keys.iter().map(|(key, _)| *key));
    let rows = session.query(sql, &[&columns.callers, &columns.series, &columns.texts, &batch]).await?;
    Ok(rows
        .iter()
        .map(|row| if row.get(0) { KeyState::New } else { known(row).unwrap_or(KeyState::Lost) })
        .collect())
}

fn known(row: &Row) -> Option<KeyState> {
    let digest = row.get::<_, &[u8]>(1).try_into().ok()?;
    row.get::<_, Option<i64>>(3)?;
    let (number, state) = (row.get::<_, Option<&str>>(4)?, row.get::<_, Option<&str>>(5)?);
    let assignment = Assignment {
        document_id: row.get(2),
        position: position(row, 3),
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
    let sql = "DELETE FROM bates.idempotency AS found USING UNNEST($1, $2, $3) AS untaken (caller, series, key)
               WHERE found.caller = untaken.caller AND found.series = untaken.series AND found.key = untaken.key
               AND found.batch = $4";
    let columns = Columns::of(keys.iter().copied());
    session.query(sql, &[&columns.callers, &columns.series, &columns.texts, &batch]).await.map(drop)
}

/// Writes which requests used keys that were inserted for another request of the batch.
pub(crate) async fn change_keys(
    session: &Session,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<(), Error> {
    let sql = "UPDATE bates.idempotency AS found SET digest = taken.digest, document_id = taken.document_id
               FROM UNNEST($1, $2, $3, $4, $5) AS taken (caller, series, key, digest, document_id)
               WHERE found.caller = taken.caller AND found.series = taken.series AND found.key = taken.key
               AND found.batch = $6";
    with_requests(session, sql, keys, batch).await.map(drop)
}

async fn with_requests(
    session: &Session,
    sql: &str,
    keys: &[(&IdempotencyKey, KeyUse)],
    batch: Uuid,
) -> Result<u64, Error> {
    if keys.is_empty() {
        return Ok(0);
    }
    let Columns { callers, series, texts } = Columns::of(keys.iter().map(|(key, _)| *key));
    let digests: Vec<&[u8]> = keys.iter().map(|(_, request)| &request.digest[..]).collect();
    let document_ids: Vec<Uuid> = keys.iter().map(|(_, request)| request.document_id).collect();
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

pub(crate) async fn write(session: &Session, numbered: &[NewDocument<'_>]) -> Result<(), Error> {
    let records: Vec<AuditRecord> = numbered.iter().filter_map(NewDocument::record).collect();
    let records: Vec<&AuditRecord> = records.iter().collect();
    // Few batches have any, and all would carry its size.
    let recording = Box::pin(audit::insert(session, &records));
    let (written, recorded) = tokio::join!(biased; write_documents(session, numbered), recording);
    written.and(recorded)
}

/// Times begin with the write, not with the transaction, which may have waited for locks.
async fn write_documents(session: &Session, numbered: &[NewDocument<'_>]) -> Result<(), Error> {
    if numbered.is_empty() {
        return Ok(());
    }
    let sql = "WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS now)
               INSERT INTO bates.document
                   (document_id, series, scope, position, number, state, body, created_at, updated_at, due_at)
               SELECT document_id, series, scope, position, number, state, body, now, now,
                   now + lasts * interval '1 millisecond'
               FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8)
                   AS numbered (document_id, series, scope, position, number, state, body, lasts), moment";
    let document_ids: Vec<Uuid> = numbered.iter().map(|each| each.assignment.document_id).collect();
    let (series, scopes) = sql::columns(numbered.iter().map(|each| &each.request.scope_id));
    let positions: Vec<i64> = numbered.iter().map(|each| integer(each.assignment.position.value())).collect();
    let numbers: Vec<&str> = numbered.iter().map(|each| &*each.assignment.number).collect();
    let states: Vec<&str> = numbered.iter().map(|each| each.assignment.state.name()).collect();
    let (bodies, lasts): (Vec<Option<Cow<'_, str>>>, Vec<f64>) =
        numbered.iter().map(|each| body(&each.request.content)).unzip();
    let of: [&dyn Parameter; 8] =
        [&document_ids, &series, &scopes, &positions, &numbers, &states, &bodies, &lasts];
    session.query(sql, &of).await.map(drop)
}

/// The body, if any, and how many milliseconds a reservation lasts.
fn body(content: &DocumentContent) -> (Option<Cow<'_, str>>, f64) {
    match content {
        DocumentContent::Document(body) => (Some(escaped(body)), 0.0),
        DocumentContent::Reservation(lasts) => (None, millis(*lasts)),
    }
}

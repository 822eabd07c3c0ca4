//! Pages of another store, written as they were there: arrays in, one statement a table, within the transaction of their
//! page.

use std::borrow::Cow;

use bates_core::{Definition, Document, Gap, Kept, Record, Request, ScopeKey, SeriesName, StoreError};
use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::audit;
use crate::batch::sql::integer;
use crate::error::Failed;
use crate::outbox::printable;
use crate::session::Session;

const DOCUMENTS: &str = "
    INSERT INTO bates.document (event, series, scope, position, number, state, body, tries, last_error,
        created_at, updated_at, due_at, in_doubt)
    SELECT event, series, scope, position, number, state, body, tries, last_error,
        'epoch'::timestamptz + created * interval '1 microsecond',
        'epoch'::timestamptz + updated * interval '1 microsecond',
        'epoch'::timestamptz + due * interval '1 microsecond', in_doubt
    FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS kept
        (event, series, scope, position, number, state, body, tries, last_error, created, updated, due, in_doubt)
    ON CONFLICT (event) DO UPDATE SET state = excluded.state, body = excluded.body, tries = excluded.tries,
        last_error = excluded.last_error, updated_at = excluded.updated_at, due_at = excluded.due_at,
        in_doubt = excluded.in_doubt";

/// What a key stands for is written with it, although its document may be there: it need not be looked for. A key
/// never changes, so one that is here already is the same.
const REQUESTS: &str = "
    INSERT INTO bates.idempotency (caller, series, key, digest, event, batch, scope, position, number, pruned_as)
    SELECT caller, series, key, digest, event, $10, scope, position, number, pruned_as
    FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9) AS request
        (caller, series, key, digest, event, scope, position, number, pruned_as)
    ON CONFLICT (caller, series, key) DO NOTHING";

const GAPS: &str = "
    INSERT INTO bates.gap (series, scope, first, last, reason, seen_at)
    SELECT series, scope, first, last, reason, 'epoch'::timestamptz + seen * interval '1 microsecond'
    FROM UNNEST($1, $2, $3, $4, $5, $6) AS gap (series, scope, first, last, reason, seen)
    ON CONFLICT (series, scope, first) DO UPDATE
        SET last = excluded.last, reason = excluded.reason, seen_at = excluded.seen_at";

/// Nobody has begun an epoch here yet: what is here already is from an earlier try.
const POOLS: &str = "
    INSERT INTO bates.pool (series, scope, epoch) SELECT $1, * FROM UNNEST($2, $3)
    ON CONFLICT (series, scope) DO UPDATE SET epoch = excluded.epoch, server_run = NULL, server_replication = NULL";

pub(super) async fn pools(
    session: &Session,
    series: &SeriesName,
    pools: &[(ScopeKey, u64)],
) -> Result<(), Failed> {
    let (scopes, epochs): (Vec<&str>, Vec<i64>) =
        pools.iter().map(|(scope, epoch)| (scope.as_str(), integer(*epoch))).unzip();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series.as_str(), Type::TEXT), (&scopes, Type::TEXT_ARRAY), (&epochs, Type::INT8_ARRAY)];
    written(session, POOLS, &parameters).await
}

pub(super) async fn documents(session: &Session, kept: &[Kept]) -> Result<(), Failed> {
    fn column<'k, T>(kept: &'k [Kept], of: impl Fn(&'k Document) -> T) -> Vec<T> {
        kept.iter().map(|kept| of(&kept.document)).collect()
    }
    let events: Vec<Uuid> = column(kept, |document| document.event);
    let series: Vec<&str> = column(kept, |document| document.place.series.as_str());
    let scopes: Vec<&str> = column(kept, |document| document.place.scope.as_str());
    let positions: Vec<i64> = column(kept, |document| integer(document.position));
    let numbers: Vec<&str> = column(kept, |document| &*document.number);
    let states: Vec<&str> = column(kept, |document| document.state.name());
    let bodies: Vec<Option<Cow<'_, str>>> =
        kept.iter().map(|kept| kept.body.as_deref().map(escaped)).collect();
    let tries: Vec<i32> = column(kept, |document| i32::try_from(document.tries).unwrap_or(i32::MAX));
    let errors: Vec<Option<Cow<'_, str>>> =
        column(kept, |document| document.last_error.as_deref().map(printable));
    let created: Vec<f64> = column(kept, |document| micros(document.created));
    let updated: Vec<f64> = column(kept, |document| micros(document.updated));
    let due: Vec<Option<f64>> = column(kept, |document| document.due.map(micros));
    let doubts: Vec<bool> = column(kept, |document| document.in_doubt);
    let parameters: [(&(dyn ToSql + Sync), Type); 13] = [
        (&events, Type::UUID_ARRAY),
        (&series, Type::TEXT_ARRAY),
        (&scopes, Type::TEXT_ARRAY),
        (&positions, Type::INT8_ARRAY),
        (&numbers, Type::TEXT_ARRAY),
        (&states, Type::TEXT_ARRAY),
        (&bodies, Type::TEXT_ARRAY),
        (&tries, Type::INT4_ARRAY),
        (&errors, Type::TEXT_ARRAY),
        (&created, Type::FLOAT8_ARRAY),
        (&updated, Type::FLOAT8_ARRAY),
        (&due, Type::FLOAT8_ARRAY),
        (&doubts, Type::BOOL_ARRAY),
    ];
    written(session, DOCUMENTS, &parameters).await
}

pub(super) async fn requests(session: &Session, requests: &[Request]) -> Result<(), Failed> {
    fn column<'r, T>(requests: &'r [Request], of: impl Fn(&'r Request) -> T) -> Vec<T> {
        requests.iter().map(of).collect()
    }
    let callers: Vec<&str> = column(requests, |request| &*request.idempotency.caller);
    let series: Vec<&str> = column(requests, |request| request.place.series.as_str());
    let keys: Vec<&str> = column(requests, |request| &*request.idempotency.key);
    let digests: Vec<&[u8]> = column(requests, |request| &request.idempotency.digest[..]);
    let events: Vec<Uuid> = column(requests, |request| request.event);
    let scopes: Vec<&str> = column(requests, |request| request.place.scope.as_str());
    let positions: Vec<i64> = column(requests, |request| integer(request.position));
    let numbers: Vec<&str> = column(requests, |request| &*request.number);
    let pruned: Vec<&str> = column(requests, |request| request.pruned_as.name());
    let batch = Uuid::now_v7();
    let parameters: [(&(dyn ToSql + Sync), Type); 10] = [
        (&callers, Type::TEXT_ARRAY),
        (&series, Type::TEXT_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&digests, Type::BYTEA_ARRAY),
        (&events, Type::UUID_ARRAY),
        (&scopes, Type::TEXT_ARRAY),
        (&positions, Type::INT8_ARRAY),
        (&numbers, Type::TEXT_ARRAY),
        (&pruned, Type::TEXT_ARRAY),
        (&batch, Type::UUID),
    ];
    written(session, REQUESTS, &parameters).await
}

pub(super) async fn gaps(session: &Session, gaps: &[Gap]) -> Result<(), Failed> {
    let series: Vec<&str> = gaps.iter().map(|gap| gap.place.series.as_str()).collect();
    let scopes: Vec<&str> = gaps.iter().map(|gap| gap.place.scope.as_str()).collect();
    let firsts: Vec<i64> = gaps.iter().map(|gap| integer(gap.missing.range.from())).collect();
    let lasts: Vec<i64> = gaps.iter().map(|gap| integer(gap.missing.range.to() - 1)).collect();
    let reasons: Vec<&str> = gaps.iter().map(|gap| gap.missing.reason.name()).collect();
    let seen: Vec<f64> = gaps.iter().map(|gap| micros(gap.seen)).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&series, Type::TEXT_ARRAY),
        (&scopes, Type::TEXT_ARRAY),
        (&firsts, Type::INT8_ARRAY),
        (&lasts, Type::INT8_ARRAY),
        (&reasons, Type::TEXT_ARRAY),
        (&seen, Type::FLOAT8_ARRAY),
    ];
    written(session, GAPS, &parameters).await
}

pub(super) async fn records(session: &Session, records: &[Record]) -> Result<(), Failed> {
    let records: Vec<&Record> = records.iter().collect();
    Ok(audit::insert(session, &records).await?)
}

pub(super) async fn definition(
    session: &Session,
    definition: &Definition,
    key: Option<&[u8]>,
) -> Result<(), Failed> {
    crate::write::insert(session, definition, key).await?;
    match crate::read::pinned(session, &definition.series).await? {
        Some((found, found_key)) if found == *definition && found_key.as_deref() == key => Ok(()),
        _ => Err(StoreError::UnknownSeries(definition.series.as_str().into()).into()),
    }
}

pub(super) async fn descriptions(
    session: &Session,
    descriptions: &[(SeriesName, Box<str>)],
) -> Result<(), Failed> {
    for (series, description) in descriptions {
        crate::write::put_description(session, series, Some(description)).await?;
    }
    Ok(())
}

/// One statement of a page.
async fn written(
    session: &Session,
    sql: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<(), Failed> {
    session.query_typed(sql, parameters).await?;
    Ok(())
}

/// PostgreSQL keeps no NUL, and JSON holds none but as an escape.
fn escaped(body: &str) -> Cow<'_, str> {
    if body.contains('\0') { body.replace('\0', "\\u0000").into() } else { body.into() }
}

/// A time as the statements take it, which multiply by it. Exact until the year 2255.
#[allow(clippy::cast_precision_loss)]
fn micros(time: Timestamp) -> f64 {
    time.as_microsecond() as f64
}

//! Documents that are numbered, and their keys.

use bates_core::ledger::{Key, KeyState, KeyUse, Keys};
use bates_core::{Assign, Assigned, Content, Idempotency, Record, State};
use rusqlite::{OptionalExtension, Result, Row, Transaction, params};

use super::{event, millis, strange};
use crate::audit;
use crate::write::{ScopeRef, integer, whole};

/// Writes a document that was numbered, with its key and its audit record.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    series_id: i64,
    (assign, assigned): (&Assign, &Assigned),
    now: i64,
) -> Result<()> {
    insert(transaction, series_id, assign, assigned, now)?;
    if let Some(idempotency) = &assign.idempotency {
        remember(transaction, ScopeRef::new(series_id, assign.place.scope.as_str()), idempotency, assigned)?;
    }
    record(transaction, series_id, assign, assigned)
}

/// What the store has of each key, in their order.
pub(crate) fn key_states(transaction: &Transaction<'_>, keys: &Keys) -> Result<Vec<KeyState>> {
    let mut statement = transaction.prepare_cached(
        "SELECT k.digest, k.event, k.position, k.number, coalesce(d.state, k.pruned_as)
         FROM idempotency AS k LEFT JOIN document AS d ON d.event = k.event
         WHERE k.series_id = (SELECT id FROM series WHERE name = ?) AND k.caller = ? AND k.key = ?",
    )?;
    let read = |row: &Row<'_>| {
        let assigned = Assigned {
            event: event(row.get(1)?),
            position: whole(row.get(2)?),
            number: row.get::<_, String>(3)?.into(),
            state: State::named(row.get_ref(4)?.as_str()?).ok_or_else(|| strange(4))?,
            is_new: false,
        };
        Ok(KeyState::Used(row.get(0)?, assigned))
    };
    let state = |(key, _): (&Key, KeyUse)| {
        let found =
            statement.query_row(params![key.series.as_str(), key.caller, key.text], read).optional()?;
        Ok(found.unwrap_or(KeyState::New))
    };
    keys.first_uses().into_iter().map(state).collect()
}

fn insert(
    transaction: &Transaction<'_>,
    series_id: i64,
    ask: &Assign,
    assigned: &Assigned,
    now: i64,
) -> Result<()> {
    let (body, due) = match &ask.content {
        Content::Document(body) => (Some(body), now),
        Content::Reservation(lasts) => (None, now.saturating_add(millis(*lasts))),
    };
    transaction
        .prepare_cached(
            "INSERT INTO document
                 (event, series_id, scope, position, number, state, body, created_at, updated_at, due_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            assigned.event.as_bytes(),
            series_id,
            ask.place.scope.as_str(),
            integer(assigned.position),
            assigned.number,
            assigned.state.name(),
            body,
            now,
            now,
            due
        ])?;
    Ok(())
}

/// Who took the number, where the series is audited.
fn record(transaction: &Transaction<'_>, series_id: i64, ask: &Assign, assigned: &Assigned) -> Result<()> {
    let Some(taking) = &ask.audit else { return Ok(()) };
    let record = Record::of_document(assigned.event, &ask.place, assigned.position, &assigned.number, taking);
    record.map_or(Ok(()), |record| audit::insert(transaction, series_id, &record))
}

fn remember(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    Idempotency { caller, key, digest }: &Idempotency,
    assigned: &Assigned,
) -> Result<()> {
    let pruned_as = if assigned.state == State::Reserved { State::Confirmed } else { State::Delivered };
    transaction
        .prepare_cached(
            "INSERT INTO idempotency (series_id, caller, key, digest, event, scope, position, number, pruned_as)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            series_id,
            caller,
            key,
            digest,
            assigned.event.as_bytes(),
            scope,
            integer(assigned.position),
            assigned.number,
            pruned_as.name()
        ])?;
    Ok(())
}

//! Documents that are numbered, and their keys.

use bates_core::ledger::{Key, KeyState, KeyUse, Keys};
use bates_core::{Assigned, Content, Idempotency, Numbered, State};
use rusqlite::{OptionalExtension, Result, Row, Transaction, params};

use super::{event, millis, strange};
use crate::audit;
use crate::write::{integer, position};

/// Writes a document that was numbered, with its key and its audit record.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    series_id: i64,
    numbered: Numbered<'_>,
    now: i64,
) -> Result<()> {
    insert(transaction, series_id, numbered, now)?;
    if let Some(idempotency) = &numbered.assign.idempotency {
        remember(transaction, series_id, numbered, idempotency)?;
    }
    match numbered.record() {
        Some(record) => audit::insert(transaction, series_id, &record),
        None => Ok(()),
    }
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
            position: position(row.get(2)?),
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
    Numbered { assign, assigned }: Numbered<'_>,
    now: i64,
) -> Result<()> {
    let (body, due) = match &assign.content {
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
            assign.place.scope.as_str(),
            integer(assigned.position.value()),
            assigned.number,
            assigned.state.name(),
            body,
            now,
            now,
            due
        ])?;
    Ok(())
}

fn remember(
    transaction: &Transaction<'_>,
    series_id: i64,
    Numbered { assign, assigned }: Numbered<'_>,
    Idempotency { caller, key, digest }: &Idempotency,
) -> Result<()> {
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
            assign.place.scope.as_str(),
            integer(assigned.position.value()),
            assigned.number,
            assigned.state.pruned_as().name()
        ])?;
    Ok(())
}

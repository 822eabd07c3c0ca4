//! A number for a document: key, cursor, ledger and document, all in the transaction of one write.

use bates_core::{
    Assign, AssignError, Assigned, Content, Cursor, GrantError, Idempotency, Lease, Record, State,
};
use rusqlite::{OptionalExtension, Result, Transaction, params};

use super::{event, millis, strange};
use crate::aside;
use crate::audit;
use crate::held;
use crate::write::{self, Refusable, Standing, integer, whole};

pub(crate) fn assign(
    transaction: &Transaction<'_>,
    ask: &Assign,
    now: i64,
    run: i64,
) -> Refusable<Assigned, AssignError> {
    let Some((series_id, scopes)) = write::series(transaction, &ask.place.series)? else {
        return Ok(Err(write::unknown(&ask.place).into()));
    };
    if let Some(known) = known(transaction, series_id, ask)? {
        return Ok(known);
    }
    let found = write::found(transaction, &ask.place)?;
    let is_new = found.is_none();
    if is_new && scopes >= ask.scopes_max {
        return Ok(Err(GrantError::TooManyScopes(ask.scopes_max).into()));
    }
    let standing = found.unwrap_or_else(|| Standing::new(series_id, ask.start));
    let (position, number) = match aside::first_accepted(transaction, ask, &standing)? {
        Ok(accepted) => accepted,
        Err(error) => return Ok(Err(error)),
    };
    let Standing { cursor: Cursor { next, version }, held, .. } = standing;
    let scope = ask.place.scope.as_str();
    let held = held::settle(transaction, (series_id, scope), next, held, run)?;
    let moved = Cursor { next: position + 1, version: version + 1 };
    write::put(transaction, (series_id, scope), moved, held, is_new)?;
    if let Some(lease) = Lease::new(position, position + 1) {
        write::enter(transaction, series_id, scope, lease)?;
    }
    let assigned = Assigned { event: ask.event, position, number, state: ask.content.state(), is_new: true };
    insert(transaction, series_id, ask, &assigned, now)?;
    if let Some(idempotency) = &ask.idempotency {
        remember(transaction, (series_id, scope), idempotency, &assigned)?;
    }
    record(transaction, series_id, ask, &assigned)?;
    Ok(Ok(assigned))
}

/// What became of the request before, if it is known.
fn known(
    transaction: &Transaction<'_>,
    series_id: i64,
    ask: &Assign,
) -> Result<Option<std::result::Result<Assigned, AssignError>>> {
    let Some(Idempotency { caller, key, digest }) = &ask.idempotency else { return Ok(None) };
    let mut statement = transaction.prepare_cached(
        "SELECT k.digest, k.event, k.position, k.number, coalesce(d.state, k.pruned_as)
         FROM idempotency AS k LEFT JOIN document AS d ON d.event = k.event
         WHERE k.series_id = ? AND k.caller = ? AND k.key = ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        if row.get::<_, [u8; 32]>(0)? != *digest {
            return Ok(Err(AssignError::KeyReused));
        }
        Ok(Ok(Assigned {
            event: event(row.get(1)?),
            position: whole(row.get(2)?),
            number: row.get::<_, String>(3)?.into(),
            state: State::named(row.get_ref(4)?.as_str()?).ok_or_else(|| strange(4))?,
            is_new: false,
        }))
    };
    statement.query_row(params![series_id, caller, key], read).optional()
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
    (series_id, scope): (i64, &str),
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

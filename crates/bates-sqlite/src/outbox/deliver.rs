//! What becomes of documents: claimed and settled by relays, decided on by people, and removed when they are old.

use std::time::Duration;

use bates_core::{Claim, Claimed, Decided, Decision, Filter, Place, ScopeKey, Settlement, StoreError};
use jiff::Timestamp;
use rusqlite::{Result, Row, Transaction, params, params_from_iter};
use uuid::Uuid;

use super::list::{self, Condition};
use super::{event, millis};
use crate::write::{Refusable, whole};

/// Claims belong to the process that made them: when it is gone, they are. What waits for a try waits no longer than
/// it would have been told to now: the clock may have been set back since, by a year as well.
pub(crate) fn release(connection: &rusqlite::Connection, now: i64) -> Result<()> {
    let sql = "UPDATE document SET due_at = 0, is_claimed = 0, in_doubt = 1 WHERE state = 'pending' AND is_claimed = 1";
    connection.execute(sql, [])?;
    let sql =
        "UPDATE document SET due_at = ?1 WHERE state = 'pending' AND due_at > ?1 + (2000 << min(tries, 16))";
    connection.execute(sql, [now]).map(drop)
}

/// Moves the deadlines of reservations by the time in which the store was closed: it does not count. Where the clock
/// was set back meanwhile, they move back.
pub(crate) fn postpone(connection: &rusqlite::Connection, closed_ms: i64) -> Result<()> {
    let sql = "UPDATE document SET due_at = due_at + ? WHERE state = 'reserved'";
    connection.execute(sql, [closed_ms]).map(drop)
}

pub(crate) fn claim(
    transaction: &Transaction<'_>,
    claim: &Claim,
    now: i64,
) -> Refusable<Vec<Claimed>, StoreError> {
    let mut due = transaction.prepare_cached(
        "SELECT event, scope, position, number, body, created_at, tries + 1, id FROM document
         WHERE state = 'pending' AND due_at <= ?2 AND series_id = (SELECT id FROM series WHERE name = ?1)
         ORDER BY tries, due_at, id LIMIT ?3",
    )?;
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| {
        let scope = ScopeKey::from_store(row.get_ref(1)?.as_str()?);
        let claimed = Claimed {
            event: event(row.get(0)?),
            place: Place { series: claim.series.clone(), scope },
            position: whole(row.get(2)?),
            number: row.get::<_, String>(3)?.into(),
            body: row.get::<_, Option<String>>(4)?.unwrap_or_default().into(),
            created: Timestamp::from_millisecond(row.get(5)?).unwrap_or(Timestamp::MAX),
            attempt: row.get(6)?,
        };
        Ok((claimed, row.get(7)?))
    };
    let mut rows = due.query_map(params![claim.series.as_str(), now, limit], read)?;
    let (mut due, mut bytes): (Vec<(Claimed, i64)>, usize) = (Vec::new(), 0);
    while bytes < claim.bytes.max(1)
        && let Some(row) = rows.next().transpose()?
    {
        bytes += row.0.body.len();
        due.push(row);
    }
    take(transaction, due.iter().map(|(_, id)| *id), now.saturating_add(millis(claim.lasts)))?;
    Ok(Ok(due.into_iter().map(|(claimed, _)| claimed).collect()))
}

/// A claim that was never settled may have ended with a delivery.
fn take(transaction: &Transaction<'_>, ids: impl Iterator<Item = i64>, until: i64) -> Result<()> {
    let mut take = transaction.prepare_cached(
        "UPDATE document SET tries = tries + 1, due_at = ?, in_doubt = in_doubt OR is_claimed, is_claimed = 1
         WHERE id = ?",
    )?;
    for id in ids {
        take.execute(params![until, id])?;
    }
    Ok(())
}

pub(crate) fn settle(
    transaction: &Transaction<'_>,
    settled: &[Settlement],
    now: i64,
) -> Refusable<u64, StoreError> {
    // A document that was delivered is of no more use here.
    let mut statement = transaction.prepare_cached(
        "UPDATE document SET state = ?3, due_at = ?4, last_error = ?5, updated_at = ?6, is_claimed = 0,
             in_doubt = in_doubt OR ?7, body = CASE ?3 WHEN 'delivered' THEN NULL ELSE body END
         WHERE event = ?1 AND tries = ?2 AND state = 'pending' AND is_claimed = 1",
    )?;
    let mut accepted = 0;
    for Settlement { event, attempt, verdict } in settled {
        let (state, after, error) = verdict.written();
        let due = after.map(|after| now.saturating_add(millis(after)));
        let (event, in_doubt) = (event.as_bytes(), verdict.is_in_doubt());
        let written = statement.execute(params![event, attempt, state.name(), due, error, now, in_doubt])?;
        accepted += written as u64;
    }
    Ok(Ok(accepted))
}

pub(crate) fn decide(
    transaction: &Transaction<'_>,
    event: Uuid,
    decision: Decision,
    now: i64,
) -> Refusable<Decided, StoreError> {
    let filter = Filter { event: Some(event), ..Filter::default() };
    let changed = change(transaction, &filter, decision, now)?;
    let Some(found) = list::documents(transaction, &filter, None, 1)?.pop() else {
        return Ok(Ok(Decided::Unknown));
    };
    // Twice is once.
    let is_so = changed == 1 || found.state == decision.changes().1 && decision != Decision::Retry;
    Ok(Ok(Decided::of(found, decision, is_so)))
}

pub(crate) fn decide_all(
    transaction: &Transaction<'_>,
    filter: &Filter,
    decision: Decision,
    now: i64,
) -> Refusable<u64, StoreError> {
    Ok(Ok(change(transaction, filter, decision, now)?))
}

fn change(transaction: &Transaction<'_>, filter: &Filter, decision: Decision, now: i64) -> Result<u64> {
    let (from, to) = decision.changes();
    let from: Vec<String> = from.iter().map(|state| format!("'{state}'")).collect();
    // A reservation whose time is over cannot be confirmed any more, even if it was not voided yet.
    let in_time = match decision {
        Decision::Confirm => format!(" AND due_at > {now}"),
        // A try that is under way may deliver it.
        Decision::Abandon => format!(" AND NOT (is_claimed AND due_at > {now})"),
        Decision::Void | Decision::Retry => String::new(),
    };
    let due = if decision == Decision::Retry { "0" } else { "NULL" };
    // The verdict of a try that is under way must not be taken for that of the next one.
    let begun = "CASE is_claimed WHEN 1 THEN tries ELSE 0 END";
    let tries = if decision == Decision::Retry { begun } else { "tries" };
    let Condition { text, values } = Condition::of(filter, None);
    let sql = format!(
        "UPDATE document SET state = '{to}', due_at = {due}, tries = {tries}, updated_at = {now},
             in_doubt = in_doubt OR is_claimed, is_claimed = 0
         WHERE state IN ({}){in_time} AND {text}",
        from.join(", ")
    );
    Ok(transaction.prepare_cached(&sql)?.execute(params_from_iter(values))? as u64)
}

/// A crash in the time since the store was last seen makes open reservations last that much longer. While there are
/// any, it is written down this often.
const SEEN_EVERY_MS: i64 = 60_000;

pub(crate) fn expire(transaction: &Transaction<'_>, limit: usize, now: i64) -> Refusable<u64, StoreError> {
    transaction
        .prepare_cached(
            "UPDATE progress SET seen_at = ?1 WHERE seen_at <= ?1 - ?2
                 AND EXISTS (SELECT 1 FROM document WHERE state = 'reserved')",
        )?
        .execute(params![now, SEEN_EVERY_MS])?;
    let mut statement = transaction.prepare_cached(
        "UPDATE document SET state = 'voided', due_at = NULL, updated_at = ?1 WHERE id IN
             (SELECT id FROM document WHERE state = 'reserved' AND due_at <= ?1 LIMIT ?2)",
    )?;
    Ok(Ok(statement.execute(params![now, i64::try_from(limit).unwrap_or(i64::MAX)])? as u64))
}

pub(crate) fn prune(
    transaction: &Transaction<'_>,
    age: Duration,
    limit: usize,
    now: i64,
) -> Refusable<u64, StoreError> {
    let (before, limit) = (now.saturating_sub(millis(age)), i64::try_from(limit).unwrap_or(i64::MAX));
    let old =
        "SELECT id FROM document WHERE state IN ('delivered', 'confirmed') AND updated_at <= ?1 LIMIT ?2";
    let removed = transaction
        .prepare_cached(&format!("DELETE FROM document WHERE id IN ({old})"))?
        .execute(params![before, limit])?;
    Ok(Ok(removed as u64))
}

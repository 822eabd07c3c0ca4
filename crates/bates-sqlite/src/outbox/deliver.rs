//! Documents after they were numbered: relays claim and settle them, and operators act on them.

use bates_core::{
    ActionCondition, ActionRule, ClaimRequest, Delivery, DocumentAction, DocumentFilter, ScopeId, ScopeKey,
    Settlement, VerdictChange,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, Transaction, params, params_from_iter};
use uuid::Uuid;

use super::list::Condition;
use super::millis;
use crate::write::{execute, position, to_limit};

/// Ends the claims of earlier processes. The clock may have been set back since, so no document waits longer than it would
/// after an attempt that fails now.
pub(crate) fn end_claims(connection: &Connection, now: i64) -> Result<()> {
    let sql = "UPDATE document SET due_at = 0, is_claimed = 0, in_doubt = 1 WHERE state = 'pending' AND is_claimed = 1";
    connection.execute(sql, [])?;
    let sql = "UPDATE document SET due_at = ?1 WHERE state = 'pending' AND due_at > ?1 + (2000 << min(attempts, 16))";
    connection.execute(sql, [now]).map(drop)
}

/// Moves the deadlines of reservations by the time that the store was closed, or back if the clock was set back.
pub(crate) fn shift_deadlines(connection: &Connection, closed_ms: i64) -> Result<()> {
    let sql = "UPDATE document SET due_at = due_at + ? WHERE state = 'reserved'";
    connection.execute(sql, [closed_ms]).map(drop)
}

pub(super) fn claim(transaction: &Transaction<'_>, claim: &ClaimRequest, now: i64) -> Result<Vec<Delivery>> {
    let mut due = transaction.prepare_cached(
        "SELECT document_id, scope, position, number, body, created_at, attempts + 1, id FROM document
         WHERE state = 'pending' AND due_at <= ?2 AND series_id = (SELECT id FROM series WHERE name = ?1)
         ORDER BY attempts, due_at, id LIMIT ?3",
    )?;
    let read = |row: &Row<'_>| {
        let scope = ScopeKey::from_store(row.get_ref(1)?.as_str()?);
        let claimed = Delivery {
            document_id: Uuid::from_bytes(row.get(0)?),
            scope_id: ScopeId { series: claim.series.clone(), scope },
            position: position(row.get(2)?),
            number: row.get::<_, String>(3)?.into(),
            body: row.get::<_, Option<String>>(4)?.unwrap_or_default().into(),
            created: Timestamp::from_millisecond(row.get(5)?).unwrap_or(Timestamp::MAX),
            attempt: row.get(6)?,
        };
        Ok((claimed, row.get(7)?))
    };
    let rows = due.query_map(params![claim.series.as_str(), now, to_limit(claim.limit)], read)?;
    // A document whose last claim was never settled is in doubt: that attempt may have delivered it.
    let mark_claimed =
        "UPDATE document SET attempts = attempts + 1, due_at = ?, in_doubt = in_doubt OR is_claimed, is_claimed = 1
         WHERE id = ?";
    let until = now.saturating_add(millis(claim.ttl));
    let due = read_up_to(rows, claim.stop_at_bytes, |(claimed, _)| claimed.body.len())?;
    let claim_row = |(claimed, id): (Delivery, i64)| {
        execute(transaction, mark_claimed, params![until, id]).map(|_| claimed)
    };
    due.into_iter().map(claim_row).collect()
}

/// Reads rows until their sizes reach `bytes`. The last row may exceed it, so that even a large one is read.
pub(crate) fn read_up_to<T>(
    rows: impl Iterator<Item = Result<T>>,
    bytes: usize,
    size: impl Fn(&T) -> usize,
) -> Result<Vec<T>> {
    let (mut page, mut page_bytes) = (Vec::new(), 0);
    for row in rows {
        let row = row?;
        page_bytes += size(&row);
        page.push(row);
        if page_bytes >= bytes.max(1) {
            break;
        }
    }
    Ok(page)
}

pub(super) fn settle(transaction: &Transaction<'_>, settlements: &[Settlement], now: i64) -> Result<u64> {
    let sql = "UPDATE document SET state = ?3, due_at = ?4, last_error = ?5, updated_at = ?6, is_claimed = 0,
                   in_doubt = in_doubt OR ?7, body = CASE ?3 WHEN 'delivered' THEN NULL ELSE body END
               WHERE document_id = ?1 AND attempts = ?2 AND state = 'pending' AND is_claimed = 1";
    let mut accepted = 0;
    for Settlement { document_id, attempt, verdict } in settlements {
        let VerdictChange { state, retry_after, error, in_doubt } = verdict.change();
        let due = retry_after.map(|after| now.saturating_add(millis(after)));
        let values = params![document_id.as_bytes(), attempt, state.name(), due, error, now, in_doubt];
        accepted += execute(transaction, sql, values)? as u64;
    }
    Ok(accepted)
}

/// Applies an action to the documents whose state allows it. Returns how many it changed.
pub(super) fn apply_action(
    transaction: &Transaction<'_>,
    filter: &DocumentFilter,
    action: DocumentAction,
    now: i64,
) -> Result<u64> {
    let ActionRule { from, to, condition, restarts_attempts } = action.rule();
    let from: Vec<String> = from.iter().map(|state| format!("'{state}'")).collect();
    let condition = match condition {
        ActionCondition::Always => String::new(),
        ActionCondition::BeforeDue => format!(" AND due_at > {now}"),
        ActionCondition::Unclaimed => format!(" AND NOT (is_claimed AND due_at > {now})"),
    };
    let restarted = "CASE is_claimed WHEN 1 THEN attempts ELSE 0 END";
    let (due, attempts) = if restarts_attempts { ("0", restarted) } else { ("NULL", "attempts") };
    let Condition { text, values } = Condition::of(filter, None);
    let sql = format!(
        "UPDATE document SET state = '{to}', due_at = {due}, attempts = {attempts}, updated_at = {now},
             in_doubt = in_doubt OR is_claimed, is_claimed = 0
         WHERE state IN ({}){condition} AND {text}",
        from.join(", ")
    );
    Ok(execute(transaction, &sql, params_from_iter(values))? as u64)
}

/// While reservations exist, the store notes the current time this often. After a crash they last at most this much longer.
const SEEN_EVERY_MS: i64 = 60_000;

pub(super) fn expire(transaction: &Transaction<'_>, limit: usize, now: i64) -> Result<u64> {
    let update_seen = "UPDATE progress SET seen_at = ?1 WHERE seen_at <= ?1 - ?2
                       AND EXISTS (SELECT 1 FROM document WHERE state = 'reserved')";
    execute(transaction, update_seen, [now, SEEN_EVERY_MS])?;
    let expire = "UPDATE document SET state = 'voided', due_at = NULL, updated_at = ?1 WHERE id IN
                      (SELECT id FROM document WHERE state = 'reserved' AND due_at <= ?1 LIMIT ?2)";
    Ok(execute(transaction, expire, [now, to_limit(limit)])? as u64)
}

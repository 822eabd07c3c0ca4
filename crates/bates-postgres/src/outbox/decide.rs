//! What people decide about documents, and what time does to them. Locks are taken in the order of ids, or skipped.

use std::time::Duration;

use bates_core::{Decided, Decision, Filter};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{self, Condition};
use super::{bounded, millis};
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::session::Session;

const EXPIRE: &str = "UPDATE bates.document SET state = 'voided', due_at = NULL, updated_at = now()
    WHERE event IN (SELECT event FROM bates.document WHERE state = 'reserved' AND due_at <= now()
                    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING true";

/// What the keys of documents stand for is kept with them from here on.
const PRUNE: &str = "WITH old AS MATERIALIZED (
        SELECT event, state, scope, position, number FROM bates.document
        WHERE state IN ('delivered', 'confirmed') AND updated_at <= now() - $1 * interval '1 millisecond'
        ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ), kept AS (
        UPDATE bates.idempotency AS kept
        SET pruned_as = old.state, scope = old.scope, position = old.position, number = old.number
        FROM old WHERE kept.event = old.event
    )
    DELETE FROM bates.document AS removed USING old WHERE removed.event = old.event RETURNING true";

pub(super) async fn decide(session: &Session, event: Uuid, decision: Decision) -> Result<Decided, Failed> {
    let filter = Filter { event: Some(event), ..Filter::default() };
    session.begin().await?;
    let changed = change(session, &filter, decision).await?;
    let found = list::documents(session, &filter, None, 1).await?.pop();
    session.batch_execute("COMMIT").await?;
    let Some(found) = found else { return Ok(Decided::Unknown) };
    // Twice is once.
    let is_so = changed == 1 || found.state == decision.changes().1 && decision != Decision::Retry;
    Ok(Decided::of(found, decision, is_so))
}

pub(super) async fn decide_all(
    session: &Session,
    filter: &Filter,
    decision: Decision,
) -> Result<u64, Failed> {
    session.begin().await?;
    let changed = change(session, filter, decision).await?;
    session.batch_execute("COMMIT").await?;
    Ok(changed)
}

async fn change(session: &Session, filter: &Filter, decision: Decision) -> Result<u64, Failed> {
    let (from, to) = decision.changes();
    let from: Vec<String> = from.iter().map(|state| format!("'{state}'")).collect();
    // A reservation whose time is over cannot be confirmed any more, even if it was not voided yet. By the clock, not
    // by the beginning of the transaction, which may have waited.
    let in_time = match decision {
        Decision::Confirm => " AND due_at > clock_timestamp()",
        // A try that is under way may deliver it.
        Decision::Abandon => " AND NOT (is_claimed AND due_at > clock_timestamp())",
        Decision::Void | Decision::Retry => "",
    };
    // The verdict of a try that is under way must not be taken for that of the next one.
    let begun = "CASE WHEN changed.is_claimed THEN changed.tries ELSE 0 END";
    let (due, tries) =
        if decision == Decision::Retry { ("to_timestamp(0)", begun) } else { ("NULL", "changed.tries") };
    let condition = Condition::of(filter, None);
    let sql = format!(
        "WITH meant AS MATERIALIZED (
             SELECT event FROM bates.document
             WHERE state IN ({}){in_time} AND {} ORDER BY event FOR UPDATE
         )
         UPDATE bates.document AS changed
         SET state = '{to}', due_at = {due}, tries = {tries}, updated_at = now(),
             in_doubt = changed.in_doubt OR changed.is_claimed, is_claimed = false
         FROM meant WHERE changed.event = meant.event",
        from.join(", "),
        condition.text
    );
    let changed = session.execute_typed(&sql, &condition.parameters()).await?;
    check_not_left(session).await?;
    Ok(changed)
}

pub(super) async fn expire(session: &Session, limit: usize) -> Result<u64, Failed> {
    written(session, EXPIRE, &[(&bounded(limit), Type::INT8)]).await
}

pub(super) async fn prune(session: &Session, age: Duration, limit: usize) -> Result<u64, Failed> {
    written(session, PRUNE, &[(&millis(age), Type::FLOAT8), (&bounded(limit), Type::INT8)]).await
}

/// One statement as a transaction; answers how many rows it says that it wrote.
async fn written(
    session: &Session,
    sql: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<u64, Failed> {
    let (began, rows) = tokio::join!(biased; session.begin(), session.query_typed(sql, parameters));
    began?;
    let written = rows?.len() as u64;
    session.batch_execute("COMMIT").await?;
    Ok(written)
}

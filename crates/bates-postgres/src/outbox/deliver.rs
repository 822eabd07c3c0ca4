//! Documents claimed and settled by relays, decided on by people, and pruned. Must never wait for another claim: locks are
//! taken in the order of ids, or skipped.

use std::time::Duration;

use bates_core::{
    ActionCondition, ActionOutcome, ActionRule, ClaimRequest, Claimed, DocumentAction, DocumentFilter,
    ScopeId, ScopeKey, Settlement, VerdictChange,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::list::{self, Condition, attempts, moment};
use super::{bounded, millis, printable};
use crate::batch::sql::position;
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::parameter::Parameter;
use crate::session::Session;

/// Skips documents that other relays are claiming. A claim that was never settled may have ended with a delivery.
const CLAIM: &str = "WITH due AS MATERIALIZED (
        SELECT document_id, attempts, due_at, octet_length(body) AS bytes FROM bates.document
        WHERE series = $1 AND state = 'pending' AND due_at <= now()
        ORDER BY attempts, due_at, document_id LIMIT $2 FOR UPDATE SKIP LOCKED
    ), fitting AS (
        SELECT document_id, attempts, due_at,
            sum(bytes) OVER (ORDER BY attempts, due_at, document_id) - bytes AS before FROM due
    ), taken AS (
        UPDATE bates.document AS taken
        SET attempts = due.attempts + 1, due_at = now() + $3 * interval '1 millisecond',
            in_doubt = taken.in_doubt OR taken.is_claimed, is_claimed = true
        FROM fitting AS due WHERE taken.document_id = due.document_id AND due.before < $4
        RETURNING taken.document_id, taken.scope, taken.position, taken.number, taken.body, taken.created_at
    )
    SELECT document_id, scope, position, number, body, (extract(epoch FROM created_at) * 1000000)::bigint,
        due.attempts + 1
    FROM taken JOIN due USING (document_id) ORDER BY due.attempts, due.due_at, document_id";

/// Rows are locked in the order of their ids, as in all statements that wait for some.
const LOCK: &str = "SELECT count(*) FROM
    (SELECT FROM bates.document WHERE document_id = ANY ($1) ORDER BY document_id FOR UPDATE) AS locked";

/// Deletes the body of a delivered document.
const SETTLE: &str = "UPDATE bates.document AS settled
    SET state = told.state, due_at = now() + told.after * interval '1 millisecond', last_error = told.error,
        updated_at = now(), is_claimed = false, in_doubt = settled.in_doubt OR told.in_doubt,
        body = CASE told.state WHEN 'delivered' THEN NULL ELSE settled.body END
    FROM UNNEST($1, $2, $3, $4, $5, $6) AS told (document_id, attempt, state, after, error, in_doubt)
    WHERE settled.document_id = told.document_id AND settled.attempts = told.attempt AND settled.state = 'pending'
        AND settled.is_claimed";

const EXPIRE: &str = "UPDATE bates.document SET state = 'voided', due_at = NULL, updated_at = now()
    WHERE document_id IN (SELECT document_id FROM bates.document WHERE state = 'reserved' AND due_at <= now()
                    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING true";

/// Keeps the answers of keys with the keys.
const PRUNE: &str = "WITH old AS MATERIALIZED (
        SELECT document_id, state, scope, position, number FROM bates.document
        WHERE state IN ('delivered', 'confirmed') AND updated_at <= now() - $1 * interval '1 millisecond'
        ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ), kept AS (
        UPDATE bates.idempotency AS kept
        SET pruned_as = old.state, scope = old.scope, position = old.position, number = old.number
        FROM old WHERE kept.document_id = old.document_id
    )
    DELETE FROM bates.document AS removed USING old WHERE removed.document_id = old.document_id RETURNING true";

pub(super) async fn claim(session: &Session, claim: &ClaimRequest) -> Result<Vec<Claimed>, Failed> {
    let (series, limit, bytes) = (claim.series.as_str(), bounded(claim.limit), bounded(claim.bytes.max(1)));
    let (lasts, is_here) = (millis(claim.ttl), check_not_left(session));
    let of: [&dyn Parameter; 4] = [&series, &limit, &lasts, &bytes];
    let (began, rows, here) = tokio::join!(biased; session.begin(), session.query(CLAIM, &of), is_here);
    began?;
    let rows = rows?;
    here?;
    session.commit().await?;
    let read = |row: &Row| Claimed {
        document_id: row.get(0),
        scope_id: ScopeId { series: claim.series.clone(), scope: ScopeKey::from_store(row.get(1)) },
        position: position(row, 2),
        number: row.get::<_, &str>(3).into(),
        body: row.get::<_, Option<&str>>(4).unwrap_or_default().into(),
        created: moment(row.get(5)),
        attempt: attempts(row.get(6)),
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn settle(session: &Session, settlements: &[Settlement]) -> Result<u64, Failed> {
    let settled: Vec<VerdictChange<'_>> = settlements.iter().map(|each| each.verdict.change()).collect();
    let document_ids: Vec<Uuid> = settlements.iter().map(|each| each.document_id).collect();
    // A try that does not fit was never made.
    let attempts: Vec<i32> =
        settlements.iter().map(|each| i32::try_from(each.attempt).unwrap_or(i32::MAX)).collect();
    let states: Vec<&str> = settled.iter().map(|each| each.state.name()).collect();
    let afters: Vec<Option<f64>> = settled.iter().map(|each| each.after.map(millis)).collect();
    let errors: Vec<_> = settled.iter().map(|each| each.error.map(printable)).collect();
    let doubts: Vec<bool> = settled.iter().map(|each| each.in_doubt).collect();
    let parameters: [&dyn Parameter; 6] = [&document_ids, &attempts, &states, &afters, &errors, &doubts];
    let (locked, accepted) = (session.query(LOCK, &parameters[..1]), session.execute(SETTLE, &parameters));
    let (began, locked, accepted) = tokio::join!(biased; session.begin(), locked, accepted);
    began?;
    locked?;
    let accepted = accepted?;
    session.commit().await.map(|()| accepted)
}

pub(super) async fn decide(
    session: &Session,
    document_id: Uuid,
    decision: DocumentAction,
) -> Result<ActionOutcome, Failed> {
    let filter = DocumentFilter { document_id: Some(document_id), ..DocumentFilter::default() };
    let decided = async {
        let changed = change(session, &filter, decision).await?;
        let found = list::documents(session, &filter, None, 1).await?.pop();
        Ok(decision.outcome(found, changed == 1))
    };
    session.transact(decided).await
}

/// Applies a decision to the documents whose state allows it; answers how many. Within a transaction.
pub(super) async fn change(
    session: &Session,
    filter: &DocumentFilter,
    decision: DocumentAction,
) -> Result<u64, Failed> {
    let ActionRule { from, to, condition: when, restarts_attempts: tries_again } = decision.rule();
    let from: Vec<String> = from.iter().map(|state| format!("'{state}'")).collect();
    // By the clock, not by the beginning of the transaction, which may have waited.
    let in_time = match when {
        ActionCondition::Always => "",
        ActionCondition::BeforeDue => " AND due_at > clock_timestamp()",
        ActionCondition::Unclaimed => " AND NOT (is_claimed AND due_at > clock_timestamp())",
    };
    let begun = "CASE WHEN changed.is_claimed THEN changed.attempts ELSE 0 END";
    let (due, attempts) = if tries_again { ("to_timestamp(0)", begun) } else { ("NULL", "changed.attempts") };
    let condition = Condition::of(filter, None);
    let sql = format!(
        "WITH meant AS MATERIALIZED (
             SELECT document_id FROM bates.document
             WHERE state IN ({}){in_time} AND {} ORDER BY document_id FOR UPDATE
         )
         UPDATE bates.document AS changed
         SET state = '{to}', due_at = {due}, attempts = {attempts}, updated_at = now(),
             in_doubt = changed.in_doubt OR changed.is_claimed, is_claimed = false
         FROM meant WHERE changed.document_id = meant.document_id",
        from.join(", "),
        condition.text
    );
    let changed = session.execute(&sql, &condition.parameters()).await?;
    check_not_left(session).await?;
    Ok(changed)
}

pub(super) async fn expire(session: &Session, limit: usize) -> Result<u64, Failed> {
    written(session, EXPIRE, &[&bounded(limit)]).await
}

pub(super) async fn prune(session: &Session, age: Duration, limit: usize) -> Result<u64, Failed> {
    written(session, PRUNE, &[&millis(age), &bounded(limit)]).await
}

/// One statement as a transaction; answers how many rows it returned.
async fn written(session: &Session, sql: &str, parameters: &[&dyn Parameter]) -> Result<u64, Failed> {
    let (began, rows) = tokio::join!(biased; session.begin(), session.query(sql, parameters));
    began?;
    let written = rows?.len() as u64;
    session.commit().await.map(|()| written)
}

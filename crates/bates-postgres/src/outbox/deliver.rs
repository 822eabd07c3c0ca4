//! Documents after they were numbered: relays claim and settle them, and callers and operators act on them.
//! Must never deadlock: rows are locked in the order of their ids, or skipped if another transaction has them.

use bates_core::{
    ActionCondition, ActionOutcome, ActionRule, ClaimRequest, Delivery, DocumentAction, DocumentFilter,
    Operation, ScopeId, ScopeKey, Settlement, VerdictChange,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::list::{self, Condition, moment, to_attempts};
use super::{millis, to_limit, without_nul};
use crate::batch::sql::{column, get_position};
use crate::error::Failure;
use crate::moving::check_not_left;
use crate::operation;
use crate::parameter::Parameter;
use crate::session::Session;

/// Skips documents that other relays are claiming. If the last claim was never settled, its attempt may have delivered it.
const CLAIM: &str = "WITH due AS MATERIALIZED (
        SELECT document_id, attempts, due_at, octet_length(body) AS bytes FROM bates.document
        WHERE series = $1 AND state = 'pending' AND due_at <= now()
        ORDER BY attempts, due_at, document_id LIMIT $2 FOR UPDATE SKIP LOCKED
    ), fitting AS (
        SELECT document_id, attempts, due_at,
            sum(bytes) OVER (ORDER BY attempts, due_at, document_id) - bytes AS before FROM due
    ), claimed AS (
        UPDATE bates.document AS claimed
        SET attempts = due.attempts + 1, due_at = now() + $3 * interval '1 millisecond',
            in_doubt = claimed.in_doubt OR claimed.is_claimed, is_claimed = true
        FROM fitting AS due WHERE claimed.document_id = due.document_id AND due.before < $4
        RETURNING claimed.document_id, claimed.scope, claimed.position, claimed.number, claimed.body, claimed.created_at
    )
    SELECT document_id, scope, position, number, body, (extract(epoch FROM created_at) * 1000000)::bigint,
        due.attempts + 1
    FROM claimed JOIN due USING (document_id) ORDER BY due.attempts, due.due_at, document_id";

/// Locks rows in the order of their ids, like all statements that wait for rows.
const LOCK: &str = "SELECT count(*) FROM
    (SELECT FROM bates.document WHERE document_id = ANY ($1) ORDER BY document_id FOR UPDATE) AS locked";

/// Deletes the body of a delivered document.
const SETTLE: &str = "UPDATE bates.document
    SET state = verdict.state, due_at = now() + verdict.after * interval '1 millisecond', last_error = verdict.error,
        updated_at = now(), is_claimed = false, in_doubt = document.in_doubt OR verdict.in_doubt,
        body = CASE verdict.state WHEN 'delivered' THEN NULL ELSE document.body END
    FROM UNNEST($1, $2, $3, $4, $5, $6) AS verdict (document_id, attempt, state, after, error, in_doubt)
    WHERE document.document_id = verdict.document_id AND document.attempts = verdict.attempt
        AND document.state = 'pending' AND document.is_claimed";

const EXPIRE: &str = "UPDATE bates.document SET state = 'voided', due_at = NULL, updated_at = now()
    WHERE document_id IN (SELECT document_id FROM bates.document WHERE state = 'reserved' AND due_at <= now()
                    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING true";

pub(super) async fn claim(session: &Session, claim: &ClaimRequest) -> Result<Vec<Delivery>, Failure> {
    let (series, limit, bytes) =
        (claim.series.as_str(), to_limit(claim.limit), to_limit(claim.stop_at_bytes.max(1)));
    let parameters: [&dyn Parameter; 4] = [&series, &limit, &millis(claim.ttl), &bytes];
    let (began, rows, not_left) = tokio::join!(
        biased; session.begin(), session.query(CLAIM, &parameters), check_not_left(session));
    began?;
    let rows = rows?;
    not_left?;
    session.commit().await?;
    let read = |row: &Row| Delivery {
        document_id: row.get(0),
        scope_id: ScopeId { series: claim.series.clone(), scope: ScopeKey::from_store(row.get(1)) },
        position: get_position(row, 2),
        number: row.get::<_, &str>(3).into(),
        body: row.get::<_, Option<&str>>(4).unwrap_or_default().into(),
        created: moment(row.get(5)),
        attempt: to_attempts(row.get(6)),
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn settle(session: &Session, settlements: &[Settlement]) -> Result<u64, Failure> {
    let changes: Vec<VerdictChange<'_>> = column(settlements, |each| each.verdict.change());
    let document_ids = column(settlements, |each| each.document_id);
    // No attempt has a number above i32::MAX.
    let attempts = column(settlements, |each| i32::try_from(each.attempt).unwrap_or(i32::MAX));
    let states = column(&changes, |change| change.state.name());
    let afters = column(&changes, |change| change.retry_after.map(millis));
    let errors = column(&changes, |change| change.error.map(without_nul));
    let doubts = column(&changes, |change| change.in_doubt);
    let parameters: [&dyn Parameter; 6] = [&document_ids, &attempts, &states, &afters, &errors, &doubts];
    let (locked, accepted) = (session.query(LOCK, &parameters[..1]), session.execute(SETTLE, &parameters));
    let (began, locked, accepted) = tokio::join!(biased; session.begin(), locked, accepted);
    began?;
    locked?;
    let accepted = accepted?;
    session.commit().await.map(|()| accepted)
}

pub(super) async fn apply_to_one(
    session: &Session,
    document_id: Uuid,
    action: DocumentAction,
    operation: Option<&Operation>,
) -> Result<ActionOutcome, Failure> {
    let filter = DocumentFilter { document_id: Some(document_id), ..DocumentFilter::default() };
    let apply = async {
        let before = match operation {
            Some(operation) => {
                session.query(LOCK, &[&vec![document_id]]).await?;
                list::documents(session, &filter, None, 1).await?.pop().zip(Some(operation))
            }
            None => None,
        };
        let changed = apply_action(session, &filter, action).await?;
        let document = list::documents(session, &filter, None, 1).await?.pop();
        if let (Some((before, operation)), 1) = (before, changed) {
            operation::append(session, Some(&action.operation_on_one(operation.clone(), &before))).await?;
        }
        Ok(action.outcome(document, changed == 1))
    };
    session.transact(apply).await
}

/// Applies an action to the documents whose state allows it. Returns how many it changed. Runs within a transaction.
pub(super) async fn apply_action(
    session: &Session,
    filter: &DocumentFilter,
    action: DocumentAction,
) -> Result<u64, Failure> {
    let ActionRule { from, to, condition, restarts_attempts } = action.rule();
    let from: Vec<String> = from.iter().map(|state| format!("'{state}'")).collect();
    // Not now(), which is the start of the transaction: it may have waited for a lock since.
    let condition = match condition {
        ActionCondition::Always => "",
        ActionCondition::BeforeDue => " AND due_at > clock_timestamp()",
        ActionCondition::Unclaimed => " AND NOT (is_claimed AND due_at > clock_timestamp())",
    };
    let restarted = "CASE WHEN changed.is_claimed THEN changed.attempts ELSE 0 END";
    let (due, attempts) =
        if restarts_attempts { ("to_timestamp(0)", restarted) } else { ("NULL", "changed.attempts") };
    let filter = Condition::of(filter, None);
    let sql = format!(
        "WITH selected AS MATERIALIZED (
             SELECT document_id FROM bates.document
             WHERE state IN ({}){condition} AND {} ORDER BY document_id FOR UPDATE
         )
         UPDATE bates.document AS changed
         SET state = '{to}', due_at = {due}, attempts = {attempts}, updated_at = now(),
             in_doubt = changed.in_doubt OR changed.is_claimed, is_claimed = false
         FROM selected WHERE changed.document_id = selected.document_id",
        from.join(", "),
        filter.text
    );
    let changed = session.execute(&sql, &filter.parameters()).await?;
    check_not_left(session).await?;
    Ok(changed)
}

pub(super) async fn expire(session: &Session, limit: usize) -> Result<u64, Failure> {
    execute_once(session, EXPIRE, &[&to_limit(limit)]).await
}

/// Runs one statement in a transaction of its own. Returns how many rows it changed.
async fn execute_once(session: &Session, sql: &str, parameters: &[&dyn Parameter]) -> Result<u64, Failure> {
    let (began, rows) = tokio::join!(biased; session.begin(), session.query(sql, parameters));
    began?;
    let changed = rows?.len() as u64;
    session.commit().await.map(|()| changed)
}

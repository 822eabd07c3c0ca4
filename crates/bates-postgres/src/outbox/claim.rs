//! Claims, and what became of them. Must never wait for another claim.

use bates_core::{Claim, Claimed, Place, ScopeKey, Settlement};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{moment, tries};
use super::{bounded, millis, printable};
use crate::batch::sql::whole;
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::session::Session;

/// Skips documents that other relays are claiming, so that none waits and none is claimed twice. A claim that was never settled may
/// have ended with a delivery.
const CLAIM: &str = "WITH due AS MATERIALIZED (
        SELECT event, tries, due_at, octet_length(body) AS bytes FROM bates.document
        WHERE series = $1 AND state = 'pending' AND due_at <= now()
        ORDER BY tries, due_at, event LIMIT $2 FOR UPDATE SKIP LOCKED
    ), fitting AS (
        SELECT event, tries, due_at, sum(bytes) OVER (ORDER BY tries, due_at, event) - bytes AS before FROM due
    ), taken AS (
        UPDATE bates.document AS taken
        SET tries = due.tries + 1, due_at = now() + $3 * interval '1 millisecond',
            in_doubt = taken.in_doubt OR taken.is_claimed, is_claimed = true
        FROM fitting AS due WHERE taken.event = due.event AND due.before < $4
        RETURNING taken.event, taken.scope, taken.position, taken.number, taken.body, taken.created_at
    )
    SELECT event, scope, position, number, body, (extract(epoch FROM created_at) * 1000000)::bigint, due.tries + 1
    FROM taken JOIN due USING (event) ORDER BY due.tries, due.due_at, event";

/// Rows are locked in the order of their ids, as in all statements that wait for some.
const LOCK: &str = "SELECT count(*) FROM
    (SELECT FROM bates.document WHERE event = ANY ($1) ORDER BY event FOR UPDATE) AS locked";

/// A document that was delivered is of no more use here.
const SETTLE: &str = "UPDATE bates.document AS settled
    SET state = told.state, due_at = now() + told.after * interval '1 millisecond', last_error = told.error,
        updated_at = now(), is_claimed = false, in_doubt = settled.in_doubt OR told.in_doubt,
        body = CASE told.state WHEN 'delivered' THEN NULL ELSE settled.body END
    FROM UNNEST($1, $2, $3, $4, $5, $6) AS told (event, attempt, state, after, error, in_doubt)
    WHERE settled.event = told.event AND settled.tries = told.attempt AND settled.state = 'pending'
        AND settled.is_claimed";

pub(super) async fn claim(session: &Session, claim: &Claim) -> Result<Vec<Claimed>, Failed> {
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&claim.series.as_str(), Type::TEXT),
        (&bounded(claim.limit), Type::INT8),
        (&millis(claim.lasts), Type::FLOAT8),
        (&bounded(claim.bytes.max(1)), Type::INT8),
    ];
    let (began, rows, here) = tokio::join!(
        biased;
        session.begin(),
        session.query_typed(CLAIM, &parameters),
        check_not_left(session)
    );
    began?;
    let rows = rows?;
    here?;
    session.batch_execute("COMMIT").await?;
    let read = |row: &Row| Claimed {
        event: row.get(0),
        place: Place { series: claim.series.clone(), scope: ScopeKey::from_store(row.get(1)) },
        position: whole(row, 2),
        number: row.get::<_, &str>(3).into(),
        body: row.get::<_, Option<&str>>(4).unwrap_or_default().into(),
        created: moment(row.get(5)),
        attempt: tries(row.get(6)),
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn settle(session: &Session, settled: &[Settlement]) -> Result<u64, Failed> {
    let events: Vec<Uuid> = settled.iter().map(|each| each.event).collect();
    // A try that does not fit was never made.
    let attempts: Vec<i32> =
        settled.iter().map(|each| i32::try_from(each.attempt).unwrap_or(i32::MAX)).collect();
    let (mut states, mut afters, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for Settlement { verdict, .. } in settled {
        let (state, after, error) = verdict.written();
        states.push(state.name());
        afters.push(after.map(millis));
        errors.push(error.map(printable));
    }
    let doubts: Vec<bool> = settled.iter().map(|each| each.verdict.is_in_doubt()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&events, Type::UUID_ARRAY),
        (&attempts, Type::INT4_ARRAY),
        (&states, Type::TEXT_ARRAY),
        (&afters, Type::FLOAT8_ARRAY),
        (&errors, Type::TEXT_ARRAY),
        (&doubts, Type::BOOL_ARRAY),
    ];
    let (began, locked, accepted) = tokio::join!(
        biased;
        session.begin(),
        session.query_typed(LOCK, &parameters[..1]),
        session.execute_typed(SETTLE, &parameters)
    );
    began?;
    locked?;
    let accepted = accepted?;
    session.batch_execute("COMMIT").await?;
    Ok(accepted)
}

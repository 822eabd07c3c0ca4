//! Removes old documents. What their positions and keys need afterwards is written by the same statement.

use std::time::Duration;

use bates_core::{DocumentState, GapReason, PruneGroup};

use super::{millis, to_limit};
use crate::error::Failure;
use crate::moving::check_not_left;
use crate::parameter::Parameter;
use crate::session::Session;

/// Removes documents of a group, at most `limit`. Returns how many. Those that another transaction has locked, as a retry
/// does, are left for the next time.
pub(super) async fn remove(
    session: &Session,
    group: PruneGroup,
    age: Duration,
    limit: usize,
) -> Result<u64, Failure> {
    let explanations: Vec<(DocumentState, bool, GapReason)> = group.explanations().collect();
    let states: Vec<&str> = explanations.iter().map(|(state, ..)| state.name()).collect();
    let doubts: Vec<bool> = explanations.iter().map(|(_, in_doubt, _)| *in_doubt).collect();
    let reasons: Vec<&str> = explanations.iter().map(|(.., reason)| reason.name()).collect();
    let parameters: [&dyn Parameter; 5] = [&millis(age), &to_limit(limit), &states, &doubts, &reasons];
    let sql = sql(group);
    // A move reads positions before documents: a document that is removed between the two would lose its explanation.
    let (began, rows, not_left) = tokio::join!(
        biased; session.begin(), session.query(&sql, &parameters), check_not_left(session));
    began?;
    let removed = rows?.len() as u64;
    not_left?;
    session.commit().await.map(|()| removed)
}

/// Copies number and state of a document to its idempotency key: the key still answers with them.
fn sql(group: PruneGroup) -> String {
    // Literals, so that PostgreSQL uses the index of the group.
    let states: Vec<String> = group.states().iter().map(|state| format!("'{state}'")).collect();
    let states = states.join(", ");
    format!(
        "WITH old AS MATERIALIZED (
             SELECT document_id, state, series, scope, position, number, in_doubt FROM bates.document
             WHERE state IN ({states}) AND updated_at <= now() - $1 * interval '1 millisecond'
             ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
         ), copied AS (
             UPDATE bates.idempotency
             SET pruned_as = old.state, scope = old.scope, position = old.position, number = old.number
             FROM old WHERE idempotency.document_id = old.document_id
         ), explained AS (
             INSERT INTO bates.lost (series, scope, first, last, reason)
             SELECT old.series, old.scope, old.position, old.position, explanation.reason
             FROM old JOIN UNNEST($3::text[], $4::boolean[], $5::text[]) AS explanation (state, in_doubt, reason)
                 USING (state, in_doubt)
             ON CONFLICT (series, scope, first) DO NOTHING
         )
         DELETE FROM bates.document USING old WHERE document.document_id = old.document_id RETURNING true"
    )
}

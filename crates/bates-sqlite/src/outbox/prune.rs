//! Removes old documents. What their positions and keys need afterwards is written in the same transaction.

use bates_core::PruneGroup;
use rusqlite::{Result, Transaction, params};

use crate::write::{execute, to_limit};

/// Removes documents of a group that were last written until `until`, at most `limit`. Returns how many.
pub(super) fn remove(
    transaction: &Transaction<'_>,
    group: PruneGroup,
    until: i64,
    limit: usize,
) -> Result<u64> {
    // Literals, so that SQLite uses the index of the group.
    let states: Vec<String> = group.states().iter().map(|state| format!("'{state}'")).collect();
    let states = states.join(", ");
    let old = format!(
        "SELECT id FROM document WHERE state IN ({states}) AND updated_at <= ?1 ORDER BY updated_at, id LIMIT ?2"
    );
    let limit = to_limit(limit);
    for (state, in_doubt, reason) in group.explanations() {
        let explain = format!(
            "INSERT INTO lost (series_id, scope, first, last, reason)
             SELECT series_id, scope, position, position, ?3 FROM document
             WHERE id IN ({old}) AND state = ?4 AND in_doubt = ?5
             ON CONFLICT (series_id, scope, first) DO NOTHING"
        );
        execute(transaction, &explain, params![until, limit, reason.name(), state.name(), in_doubt])?;
    }
    if group == PruneGroup::Undelivered {
        let keep = format!("INSERT INTO removed SELECT document_id, state FROM document WHERE id IN ({old})");
        execute(transaction, &keep, params![until, limit])?;
    }
    let removed =
        execute(transaction, &format!("DELETE FROM document WHERE id IN ({old})"), params![until, limit])?;
    Ok(removed as u64)
}

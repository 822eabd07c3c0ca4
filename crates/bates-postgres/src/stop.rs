//! Stopping all nodes, and letting them go on: written where each of them looks before it issues anything.
//!
//! Invariant: nothing but an operator ends a stop.

use crate::error::{Failed, OpenError};
use crate::holding;
use crate::moving::lock_unmarked;
use crate::session::Session;

/// Stops all nodes, for a reason that each of them tells. One that is there already stays. Does nothing if an operator has
/// accepted the database after the acceptance `seen`: what the node saw is what the operator accepted.
pub(crate) async fn stop(session: &Session, reason: &str, seen: i64) -> Result<(), Failed> {
    let sql = "UPDATE bates.store SET stopped = $1 WHERE stopped IS NULL AND acceptances <= $2";
    session.begin().await?;
    session.query(sql, &[&reason, &seen]).await?;
    session.commit().await
}

/// Lets all nodes go on with the database as it is. Refused if it was left for another store, or is being filled from
/// one. Answers with its timeline.
/// Acceptances go by the clock: one after a restore must be above those that the restored database knows nothing of.
pub(crate) async fn accept(session: &Session) -> Result<i64, Failed> {
    // Of what was taken back, something may be in a pool: each is begun anew.
    let sql = "WITH pools AS (UPDATE bates.pool SET server_run = NULL, server_replication = NULL)
               UPDATE bates.store SET
                   acceptances = greatest(acceptances + 1, (extract(epoch FROM now()) * 1000000)::bigint),
                   stopped = NULL,
                   timeline = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
               RETURNING timeline";
    session.begin().await?;
    // A batch under way may have been granted a lease that the next statement does not see.
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    lock_unmarked(session).await?;
    let rows = session.query(sql, &[]).await?;
    holding::write_off(session, "true", &[]).await?;
    session.commit().await?;
    rows.first().map(|row| row.get(0)).ok_or(Failed::Refused(OpenError::Emptied))
}

//! Stopping all nodes, and letting them go on: written where each of them looks before it issues anything.
//!
//! Invariant: a pause is ended by whoever began it, and nothing but an operator ends any other stop.

use bates_core::StoreError;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::batch::lose::lose_leases;
use crate::error::{Failed, OpenError};
use crate::session::Session;

/// A stop that passes, by the one who makes it. No two have the same text, so none is taken for another.
#[derive(Debug)]
pub struct Pause(String);

impl Pause {
    /// A pause for a reason that every node tells.
    pub fn new(reason: &str) -> Self {
        Self(format!("{reason} (pause {})", Uuid::now_v7()))
    }
}

/// Stops all nodes, for a reason that each of them tells. One that is there already stays.
pub(crate) async fn stop(session: &Session, reason: &str) -> Result<(), Failed> {
    let sql = "UPDATE bates.store SET stopped = $1 WHERE stopped IS NULL";
    changed(session, sql, reason).await.map(drop)
}

/// Begins a pause; refuses if the nodes are stopped already.
pub(crate) async fn pause(session: &Session, Pause(told): &Pause) -> Result<(), Failed> {
    let sql = "UPDATE bates.store SET stopped = $1 WHERE stopped IS NULL";
    match changed(session, sql, told).await? {
        Some(stopped) if stopped != *told => Err(StoreError::Poisoned(stopped.into()).into()),
        _ => Ok(()),
    }
}

/// Ends a pause. What was seen meanwhile stays: a stop for another reason, and another timeline.
pub(crate) async fn resume(session: &Session, Pause(told): &Pause) -> Result<(), Failed> {
    let sql = "UPDATE bates.store SET stopped = NULL WHERE stopped = $1";
    match changed(session, sql, told).await? {
        Some(stopped) => Err(StoreError::Poisoned(stopped.into()).into()),
        None => Ok(()),
    }
}

/// Changes why the nodes are stopped, and answers why they are then.
async fn changed(session: &Session, sql: &str, text: &str) -> Result<Option<String>, Failed> {
    session.begin().await?;
    session.query_typed(sql, &[(&text, Type::TEXT)]).await?;
    let rows = session.query_typed("SELECT stopped FROM bates.store", &[]).await?;
    session.batch_execute("COMMIT").await?;
    rows.first().map(|row| row.get(0)).ok_or(Failed::Refused(OpenError::Emptied))
}

/// Lets all nodes go on with the database as it is, unless it was left for another store. Answers with its timeline.
/// Acceptances go by the clock: one after a restore must be above those that the restored database knows nothing of.
pub(crate) async fn accept(session: &Session) -> Result<i64, Failed> {
    // Of what was taken back, something may be in a pool: each is begun anew.
    let sql = "WITH pools AS (UPDATE bates.pool SET server_run = NULL, server_replication = NULL)
               UPDATE bates.store SET
                   acceptances = greatest(acceptances + 1, (extract(epoch FROM now()) * 1000000)::bigint),
                   stopped = CASE WHEN mark IS NULL THEN NULL ELSE stopped END,
                   timeline = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
               RETURNING timeline";
    session.begin().await?;
    let rows = session.query_typed(sql, &[]).await?;
    lose_leases(session).await?;
    session.batch_execute("COMMIT").await?;
    rows.first().map(|row| row.get(0)).ok_or(Failed::Refused(OpenError::Emptied))
}

//! The schema of a store, `schema.sql`: created once, even if many nodes start together, and refused in any other version.
//! An existing schema must never need more than the right to read.

use bates_core::MoveMark;

use crate::error::{Failure, OpenError, describe};
use crate::moving::write_mark;
use crate::session::Session;

const SCHEMA: &str = include_str!("schema.sql");

/// The version of `schema.sql`. A change of the schema raises it, and comes with a migration from each version since 14;
/// none is ever changed or removed.
const VERSION: i32 = 14;

/// A node holds this lock while it creates the schema: several may start at once. The key is the text `bates` as a number.
const LOCK: &str = "SELECT pg_advisory_xact_lock(422541813107)";

/// The SQL that creates the schema, for operators who apply it themselves.
pub fn schema_plan() -> String {
    format!("BEGIN;\n{}COMMIT;\n", statements())
}

fn statements() -> String {
    format!("{SCHEMA}\nINSERT INTO bates.migration (version) VALUES ({VERSION});\n")
}

/// Whether a database has no schema yet. Refuses a schema of another version.
pub(crate) async fn is_missing(session: &Session) -> Result<bool, Failure> {
    // Not `to_regclass`: its answer comes from the cache of the session, and may be older than the lock.
    let sql = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'bates' AND tablename = 'migration'";
    if session.query(sql, &[]).await?.is_empty() {
        return Ok(true);
    }
    let rows = session.query("SELECT coalesce(max(version), 0) FROM bates.migration", &[]).await?;
    match rows.first().map_or(0, |row| row.get(0)) {
        VERSION => Ok(false),
        found => Err(Failure::Refused(OpenError::OtherVersion { found, needed: VERSION })),
    }
}

/// Creates the schema if it is missing, with `mark` in the same transaction. Returns whether it was missing.
pub(crate) async fn create(session: &Session, mark: Option<&MoveMark>) -> Result<bool, Failure> {
    let refused = |error: tokio_postgres::Error| {
        let reason = describe(&error);
        match Failure::from(error) {
            Failure::Permanent(_) => Failure::Refused(OpenError::Migrate { needed: VERSION, reason }),
            transient => transient,
        }
    };
    session.begin().await?;
    session.batch_execute(LOCK).await.map_err(refused)?;
    // Checked again under the lock: another node may have created it.
    let is_missing = is_missing(session).await?;
    if is_missing {
        session.batch_execute(&statements()).await.map_err(refused)?;
        if mark.is_some() {
            write_mark(session, mark).await?;
        }
    }
    session.commit().await?;
    Ok(is_missing)
}

//! The schema of a store, `schema.sql`: created once, even if many nodes start together, migrated only by a
//! command, and refused in any other version. A current schema must never need more than the right to read.

use bates_core::MoveMark;

use crate::error::{Failure, OpenError, describe};
use crate::moving::write_mark;
use crate::session::Session;

const SCHEMA: &str = include_str!("schema.sql");

/// The oldest version that can be migrated.
const OLDEST: i32 = 14;

/// What leads from each version, beginning with [`OLDEST`], to the next. A change of the schema adds one, and none is ever
/// changed or removed.
const MIGRATIONS: [&str; 2] = [include_str!("migrations/15.sql"), include_str!("migrations/16.sql")];

/// The version of `schema.sql`.
const VERSION: i32 = 16;
const _: () = assert!(MIGRATIONS.len() == (VERSION - OLDEST) as usize, "one migration for each version");

/// A node holds this lock while it creates the schema: several may start at once. The key is the text `bates` as a number.
const LOCK: &str = "SELECT pg_advisory_xact_lock(422541813107)";

/// The SQL that makes or migrates the schema, for operators who apply it themselves. `None`: nothing is to be done.
pub(crate) async fn plan(session: &Session) -> Result<Option<String>, Failure> {
    let found = version(session).await?;
    Ok((found != Some(VERSION)).then(|| format!("BEGIN;\n{}COMMIT;\n", statements(found))))
}

/// Of a database without a schema, or with one of an earlier version.
fn statements(found: Option<i32>) -> String {
    let Some(found) = found else {
        return format!("{SCHEMA}\nINSERT INTO bates.migration (version) VALUES ({VERSION});\n");
    };
    let after = usize::try_from(found - OLDEST).unwrap_or_default();
    let migrations = MIGRATIONS.iter().skip(after).copied().collect::<String>();
    format!("{migrations}\nUPDATE bates.migration SET version = {VERSION}, applied_at = now();\n")
}

/// Whether a database has no schema yet. Refuses a schema of another version.
pub(crate) async fn is_missing(session: &Session) -> Result<bool, Failure> {
    match version(session).await? {
        None => Ok(true),
        Some(VERSION) => Ok(false),
        Some(found) => Err(Failure::Refused(OpenError::OlderVersion { found, needed: VERSION })),
    }
}

/// `None` if there is no schema. Refuses one that cannot be migrated.
async fn version(session: &Session) -> Result<Option<i32>, Failure> {
    // Not `to_regclass`: its answer comes from the cache of the session, and may be older than the lock.
    let sql = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'bates' AND tablename = 'migration'";
    if session.query(sql, &[]).await?.is_empty() {
        return Ok(None);
    }
    let rows = session.query("SELECT coalesce(max(version), 0) FROM bates.migration", &[]).await?;
    match rows.first().map_or(0, |row| row.get(0)) {
        found @ OLDEST..=VERSION => Ok(Some(found)),
        found => Err(Failure::Refused(OpenError::OtherVersion { found, needed: VERSION })),
    }
}

/// Creates the schema if it is missing, with `mark` in the same transaction, or migrates it. Returns whether it was missing.
pub(crate) async fn create_or_migrate(session: &Session, mark: Option<&MoveMark>) -> Result<bool, Failure> {
    if version(session).await? == Some(VERSION) {
        return Ok(false);
    }
    let refused = |error: tokio_postgres::Error| {
        let reason = describe(&error);
        match Failure::from(error) {
            Failure::Permanent(_) => Failure::Refused(OpenError::Migrate { needed: VERSION, reason }),
            transient => transient,
        }
    };
    session.begin().await?;
    session.batch_execute(LOCK).await.map_err(refused)?;
    // Read again under the lock: another node may have been faster.
    let found = version(session).await?;
    if found != Some(VERSION) {
        session.batch_execute(&statements(found)).await.map_err(refused)?;
    }
    if found.is_none() && mark.is_some() {
        write_mark(session, mark).await?;
    }
    session.commit().await?;
    Ok(found.is_none())
}

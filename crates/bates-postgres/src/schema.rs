//! The schema of a store, `schema.sql`: created once, even if many nodes start together, and refused in any other version.
//! An existing schema must never need more than the right to read.

use bates_core::MoveMark;

use crate::error::{Failure, OpenError, describe};
use crate::moving::write_mark;
use crate::session::Session;

const SCHEMA: &str = include_str!("schema.sql");

/// The oldest version that can be migrated.
const OLDEST: i32 = 14;

/// What leads from each version, beginning with [`OLDEST`], to the next. A change of the schema adds one, and none is ever
/// changed or removed. Nodes of the version before may still serve: a migration only adds what they do not need.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/15.sql")];

/// The version of `schema.sql`.
const VERSION: i32 = 15;
const _: () = assert!(MIGRATIONS.len() == (VERSION - OLDEST) as usize, "one migration for each version");

/// A node holds this lock while it creates the schema: several may start at once. The key is the text `bates` as a number.
const LOCK: &str = "SELECT pg_advisory_xact_lock(422541813107)";

/// What a database has of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// An earlier version, which can be migrated.
    Earlier(i32),
    Current,
}

impl Found {
    /// The SQL that creates or completes the schema, for operators who apply it themselves. Empty if nothing is missing.
    pub(crate) fn plan(self) -> String {
        match self {
            Self::Current => String::new(),
            _ => format!("BEGIN;\n{}COMMIT;\n", self.statements()),
        }
    }

    fn statements(self) -> String {
        match self {
            Self::Nothing => format!("{SCHEMA}\nINSERT INTO bates.migration (version) VALUES ({VERSION});\n"),
            Self::Earlier(found) => {
                let missing = MIGRATIONS.iter().skip(usize::try_from(found - OLDEST).unwrap_or_default());
                let migrations: String = missing.copied().collect();
                format!("{migrations}UPDATE bates.migration SET version = {VERSION}, applied_at = now();\n")
            }
            Self::Current => String::new(),
        }
    }
}

/// The SQL that creates the schema.
pub fn schema_plan() -> String {
    Found::Nothing.plan()
}

/// Refuses a schema of a version that cannot be migrated.
pub(crate) async fn find(session: &Session) -> Result<Found, Failure> {
    // Not `to_regclass`: its answer comes from the cache of the session, and may be older than the lock.
    let sql = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'bates' AND tablename = 'migration'";
    if session.query(sql, &[]).await?.is_empty() {
        return Ok(Found::Nothing);
    }
    let rows = session.query("SELECT coalesce(max(version), 0) FROM bates.migration", &[]).await?;
    match rows.first().map_or(0, |row| row.get(0)) {
        VERSION => Ok(Found::Current),
        found @ OLDEST..VERSION => Ok(Found::Earlier(found)),
        found => Err(Failure::Refused(OpenError::OtherVersion { found, needed: VERSION })),
    }
}

/// Creates the schema if it is missing, with `mark` in the same transaction, or migrates it. Returns what it found.
pub(crate) async fn create_or_migrate(session: &Session, mark: Option<&MoveMark>) -> Result<Found, Failure> {
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
    let found = find(session).await?;
    if found != Found::Current {
        session.batch_execute(&found.statements()).await.map_err(refused)?;
    }
    if found == Found::Nothing && mark.is_some() {
        write_mark(session, mark).await?;
    }
    session.commit().await?;
    Ok(found)
}

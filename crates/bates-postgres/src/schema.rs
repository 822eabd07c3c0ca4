//! The schema, by migrations: each is applied once, in one transaction with the others that are missing, and never
//! changed afterwards. Must never need more rights than reading where nothing is missing.

use std::fmt::Write as _;

use bates_core::Mark;
use tokio_postgres::error::SqlState;

use crate::error::{Failed, OpenError, told};
use crate::moving::write_mark;
use crate::session::Session;

/// Migration n brings the schema to version n + 1.
const MIGRATIONS: [&str; 12] = [
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
    include_str!("migrations/10.sql"),
    include_str!("migrations/11.sql"),
    include_str!("migrations/12.sql"),
];

/// The version that this program knows.
pub(crate) const VERSION: i32 = 12;

/// Held, until the transaction ends, by whoever changes the schema: ten nodes may start at once. The key is the text
/// `bates` as a number; advisory locks of other programs are others.
const LOCK: &str = "SELECT pg_advisory_xact_lock(422541813107)";

/// The SQL that brings a schema of this version to the one that the program knows: for people who apply it
/// themselves. 0 is a database without one. Empty if nothing is missing.
pub fn plan(version: i32) -> String {
    let done = usize::try_from(version).unwrap_or(0);
    if done >= MIGRATIONS.len() {
        return String::new();
    }
    let mut sql = String::from("BEGIN;\n");
    if done == 0 {
        sql.push_str("CREATE SCHEMA IF NOT EXISTS bates;\n\n");
    }
    for (migration, number) in MIGRATIONS.iter().zip(1..).skip(done) {
        // Writing to a text does not fail.
        let _ = writeln!(sql, "{migration}\nINSERT INTO bates.migration (version) VALUES ({number});");
    }
    sql.push_str("COMMIT;\n");
    sql
}

/// The version of the schema; 0 if there is none.
pub(crate) async fn version(session: &Session) -> Result<i32, Failed> {
    match session.query_typed("SELECT coalesce(max(version), 0) FROM bates.migration", &[]).await {
        Ok(rows) => Ok(rows.first().map_or(0, |row| row.get(0))),
        Err(error)
            if [Some(&SqlState::UNDEFINED_TABLE), Some(&SqlState::INVALID_SCHEMA_NAME)]
                .contains(&error.code()) =>
        {
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a schema that the program does not know.
pub(crate) fn check(found: i32) -> Result<(), OpenError> {
    if found > VERSION { Err(OpenError::TooNew { found, known: VERSION }) } else { Ok(()) }
}

/// Applies what is missing, once, however many nodes do so together. Where there was nothing the new store gets `mark` in
/// the same transaction.
pub(crate) async fn migrate(session: &Session, mark: Option<&Mark>) -> Result<(), Failed> {
    let refused = |error: tokio_postgres::Error| {
        let reason = told(&error);
        match Failed::from(error) {
            Failed::Lasting(_) => Failed::Refused(OpenError::Migrate { known: VERSION, reason }),
            passing => passing,
        }
    };
    session.begin().await?;
    session.batch_execute(LOCK).await.map_err(refused)?;
    // Asked again under the lock: another node may have been faster.
    let found = session.query_typed(IS_THERE, &[]).await.map_err(refused)?;
    let found = if found.iter().any(|row| row.get(0)) { version(session).await? } else { 0 };
    check(found).map_err(Failed::Refused)?;
    let sql = plan(found).replace("BEGIN;\n", "").replace("COMMIT;\n", "");
    session.batch_execute(&sql).await.map_err(refused)?;
    if found == 0 && mark.is_some() {
        write_mark(session, mark).await?;
    }
    Ok(session.batch_execute("COMMIT").await?)
}

const IS_THERE: &str = "SELECT to_regclass('bates.migration') IS NOT NULL";

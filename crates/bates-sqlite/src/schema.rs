//! The schema, by migrations: each is applied once and never changed afterwards.

use bates_core::Mark;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;
use crate::moving::write_mark;
use crate::progress;

/// Migration n brings the schema to version n + 1. Whoever opens the file with `sqlite3` should understand it.
const MIGRATIONS: [&str; 12] = [
    "-- What decides how positions read. Written once; a configuration that disagrees is refused.
     CREATE TABLE series (
         id              INTEGER PRIMARY KEY,
         name            TEXT NOT NULL UNIQUE,
         template        TEXT NOT NULL,
         parameters      TEXT NOT NULL,
         shuffled        INTEGER NOT NULL CHECK (shuffled IN (0, 1)),
         start           INTEGER NOT NULL,
         reset           TEXT NOT NULL,
         time_zone       TEXT NOT NULL,
         construction    INTEGER NOT NULL,
         permutation_key BLOB,
         scopes          INTEGER NOT NULL DEFAULT 0,
         pinned_at       TEXT NOT NULL DEFAULT (datetime('now'))
     ) STRICT;

     -- The first position of each scope that is not yet granted. Rows are never deleted.
     CREATE TABLE cursor (
         series_id INTEGER NOT NULL REFERENCES series (id),
         scope     TEXT NOT NULL,
         next      INTEGER NOT NULL,
         version   INTEGER NOT NULL,
         PRIMARY KEY (series_id, scope)
     ) STRICT, WITHOUT ROWID;

     -- What gapless series issued: positions from first to last, written in the commit that moved the cursor.
     CREATE TABLE ledger (
         series_id INTEGER NOT NULL REFERENCES series (id),
         scope     TEXT NOT NULL,
         first     INTEGER NOT NULL,
         last      INTEGER NOT NULL,
         issued_at TEXT NOT NULL DEFAULT (datetime('now')),
         PRIMARY KEY (series_id, scope, first)
     ) STRICT, WITHOUT ROWID;

     CREATE VIEW cursors AS
         SELECT series.name AS series, cursor.scope, cursor.next, cursor.version
         FROM cursor JOIN series ON series.id = cursor.series_id;",
    "-- How a series that was made at run time was described, as JSON. NULL: the configuration describes it, or it
     -- was retired; its cursors stay either way.
     ALTER TABLE series ADD COLUMN description TEXT;

     -- Written to find out whether anything can be written.
     CREATE TABLE probe (count INTEGER NOT NULL) STRICT;
     INSERT INTO probe VALUES (0);",
    "-- Whether the store was left for another one, or is still being filled from one: then it is not served.
     CREATE TABLE mark (
         kind      TEXT NOT NULL CHECK (kind IN ('left', 'arriving')),
         store     TEXT NOT NULL,
         marked_at TEXT NOT NULL DEFAULT (datetime('now'))
     ) STRICT;",
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

/// Which schema a database has; 0 if it is empty.
pub(crate) fn version(connection: &Connection) -> Result<u32, OpenError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known { Err(OpenError::TooNew { found, known }) } else { Ok(found) }
}

/// Brings the schema up to date, in one transaction; a store that is made gets `mark` in it. Answers whether anything was
/// to do.
pub(crate) fn migrate(connection: &mut Connection, mark: Option<&Mark>) -> Result<bool, OpenError> {
    let (found, known) = (version(connection)?, u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX));
    if found == known {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    progress::count(&transaction)?;
    if found == 0 && mark.is_some() {
        write_mark(&transaction, mark)?;
    }
    transaction.commit()?;
    Ok(true)
}

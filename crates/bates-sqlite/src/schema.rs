//! The schema of a store, `schema.sql`, and the migrations of stores that an earlier version created. Must never change a
//! store of a version that it does not know.

use bates_core::MoveMark;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;
use crate::moving::write_mark;

const SCHEMA: &str = include_str!("schema.sql");

/// The oldest version that can be migrated.
const OLDEST: u32 = 14;

/// What leads from each version, beginning with [`OLDEST`], to the next. A change of the schema adds one, and none is ever
/// changed or removed.
const MIGRATIONS: [&str; 3] =
    [include_str!("migrations/15.sql"), include_str!("migrations/16.sql"), include_str!("migrations/17.sql")];

/// The version of `schema.sql`, which the database holds as its `user_version`.
const VERSION: u32 = 17;
const _: () = assert!(MIGRATIONS.len() == (VERSION - OLDEST) as usize, "one migration for each version");

/// Whether a database has no schema yet. Refuses a schema that cannot be migrated.
pub(crate) fn is_missing(connection: &Connection) -> Result<bool, OpenError> {
    Ok(version(connection)?.is_none())
}

/// `None` if there is no schema.
fn version(connection: &Connection) -> Result<Option<u32>, OpenError> {
    match connection.pragma_query_value(None, "user_version", |row| row.get(0))? {
        0 => Ok(None),
        found @ OLDEST..=VERSION => Ok(Some(found)),
        found => Err(OpenError::OtherVersion { found, oldest: OLDEST, newest: VERSION }),
    }
}

/// Creates the schema if it is missing, with `mark` in the same transaction, or migrates it. Returns whether it was missing.
pub(crate) fn create_or_migrate(
    connection: &mut Connection,
    mark: Option<&MoveMark>,
) -> Result<bool, OpenError> {
    let found = version(connection)?;
    if found == Some(VERSION) {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match found {
        None => transaction.execute_batch(SCHEMA)?,
        Some(found) => {
            let migrations = MIGRATIONS.iter().skip((found - OLDEST) as usize);
            migrations.copied().try_for_each(|migration| transaction.execute_batch(migration))?;
        }
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    if mark.is_some() {
        write_mark(&transaction, mark)?;
    }
    transaction.commit()?;
    Ok(found.is_none())
}

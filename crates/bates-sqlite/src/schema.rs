//! The schema of a store, `schema.sql`: created once, and refused in any other version.

use bates_core::MoveMark;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;
use crate::moving::write_mark;

const SCHEMA: &str = include_str!("schema.sql");

/// The version of `schema.sql`, which the database holds as its `user_version`. A change of the schema raises it.
const VERSION: u32 = 14;

/// Whether a database has no schema yet. Refuses a schema of another version.
pub(crate) fn is_missing(connection: &Connection) -> Result<bool, OpenError> {
    match connection.pragma_query_value(None, "user_version", |row| row.get(0))? {
        0 => Ok(true),
        VERSION => Ok(false),
        found => Err(OpenError::OtherVersion { found, needed: VERSION }),
    }
}

/// Creates the schema if it is missing, with `mark` in the same transaction. Returns whether it was missing.
pub(crate) fn create(connection: &mut Connection, mark: Option<&MoveMark>) -> Result<bool, OpenError> {
    if !is_missing(connection)? {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    if mark.is_some() {
        write_mark(&transaction, mark)?;
    }
    transaction.commit()?;
    Ok(true)
}

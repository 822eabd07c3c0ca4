//! Why a folder could not be opened as a store, and what an error of SQLite means for numbers.

use std::io;
use std::path::PathBuf;

use bates_core::StoreError;
use rusqlite::ffi::ErrorCode;

/// Why a folder could not be opened as a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it open.
    #[error("{0} is in use by another process: two would hand out the same numbers")]
    InUse(PathBuf),
    /// There is no store where one must be.
    #[error("{0} holds no store: no bates.db is in it")]
    NoStore(PathBuf),
    /// The folder was used before, and its database or the log that belongs to it is gone.
    #[error(
        "{0} was a store before, but its database is missing, empty, or without the log (bates.db-wal) that \
         belongs to it: numbers could come twice. Bring the files back together, or go on with what is there, \
         on purpose, with --new"
    )]
    Gone(PathBuf),
    /// The store was moved.
    #[error("this store was left for {0}, and numbering goes on there: it is not served again")]
    Left(Box<str>),
    /// The store is not complete.
    #[error("this store is being filled from {0}: run `bates move-store` again, which finishes it")]
    Arriving(Box<str>),
    /// The database is of a later version of the program.
    #[error(
        "the database has schema {found}, and this program knows up to {known}: it was written by a later version"
    )]
    TooNew {
        /// What the database has.
        found: u32,
        /// What this program knows.
        known: u32,
    },
    /// The database could not be read.
    #[error("cannot read the database: {0}")]
    Unreadable(Box<str>),
    /// The operating system refused something.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// The operating system's reason.
        error: io::Error,
    },
    /// SQLite refused something.
    #[error("cannot open the database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// A full disk may have room again; whatever else fails while writing leaves it open what is on disk.
pub(crate) fn of_write(error: &rusqlite::Error) -> StoreError {
    let message = error.to_string().into();
    // The index of the log could not grow: nothing of the commit was written yet.
    if error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return StoreError::Unavailable(message);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Unavailable(message)
        }
        _ => {
            StoreError::Poisoned(format!("{message}; what is on disk is known when it is opened anew").into())
        }
    }
}

/// A failed read tells nothing and changes nothing.
pub(crate) fn of_read(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string().into())
}

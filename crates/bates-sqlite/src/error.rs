//! Why a folder could not be opened as a store, and what an error of SQLite means for numbers.

use std::io;
use std::path::PathBuf;

use bates_core::StoreError;
use rusqlite::ffi::ErrorCode;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("{0} is in use by another process: two would hand out the same numbers")]
    InUse(PathBuf),
    #[error("{0} is open in this process already: use the handle that has it open, or close that first")]
    InUseHere(PathBuf),
    #[error("{0} holds no store: no bates.db is in it")]
    NoStore(PathBuf),
    #[error(
        "{0} was a store before, but bates.db is missing or empty: numbers would come twice. Bring the files of the \
         store back together, or begin again at the first number, on purpose: with --new, or with Opening::New in a program"
    )]
    Gone(PathBuf),
    #[error("{path} is not opened: {damage}. Numbers that were issued could come again. {}", .damage.advice())]
    Damaged { path: PathBuf, damage: Damage },
    #[error(
        "{0} is open in another program, such as sqlite3: close it. After a crash the log is replaced by a copy that \
         is on disk for sure, and that program would go on with the old one"
    )]
    DatabaseInUse(PathBuf),
    #[error("no room to copy {log} after a crash: it takes {bytes} bytes. Make room, and start again")]
    NoRoom { log: PathBuf, bytes: u64 },
    #[error("this store was left for {0}, and numbering goes on there: it is not served again")]
    Left(Box<str>),
    #[error("this store is being filled from {0}: run `bates move-store` again, which finishes it")]
    Arriving(Box<str>),
    #[error(
        "the database has schema version {found}, and this version of Bates needs {needed}: run the version of Bates \
         that created the store"
    )]
    OtherVersion { found: u32, needed: u32 },
    #[error("cannot read the database: {0}")]
    Unreadable(Box<str>),
    #[error("cannot {doing} {path}: {error}")]
    Io { doing: &'static str, path: PathBuf, error: io::Error },
    #[error("cannot open the database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Why it is not certain that a store has all that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    #[error(
        "bates.db and its log (bates.db-wal) end at commit {found} of {answered}. The log is damaged, or an older copy \
         was put back"
    )]
    CommitsMissing { found: u64, answered: u64 },
    #[error("the log (bates.db-wal) that belongs to bates.db is missing")]
    LogMissing,
    #[error(
        "bates.db is a mixture of old and new pages: a crash left it while the log (bates.db-wal) was being written \
         into it, and the log is missing or damaged"
    )]
    Mixed,
    #[error("bates.state is missing, which says up to which commit numbers were issued")]
    StateMissing,
    #[error("bates.state cannot be read, which says up to which commit numbers were issued")]
    StateUnreadable,
    #[error("commits are missing, and `bates floor --accept-loss` was not run yet")]
    NotAccepted,
}

impl Damage {
    fn advice(self) -> &'static str {
        if self == Self::Mixed {
            return "Put bates.db, bates.db-wal and bates.state back undamaged. If that is not possible, put bates.db of \
                    a backup in its place and remove bates.db-wal and bates.state; then raise the cursors with `bates \
                    floor`";
        }
        "Put bates.db, bates.db-wal and bates.state back undamaged. If that is not possible, raise the cursor of each \
         scope above what was issued with `bates floor`, then run `bates floor --accept-loss`"
    }
}

/// A full disk may have room again; after any other failed write it is unknown what is on disk.
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

/// A failed read changes nothing.
pub(crate) fn of_read(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string().into())
}

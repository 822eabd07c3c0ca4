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
    /// This process has it open.
    #[error("{0} is open in this process already: use the handle that has it open, or close that first")]
    InUseHere(PathBuf),
    /// There is no store where one must be.
    #[error("{0} holds no store: no bates.db is in it")]
    NoStore(PathBuf),
    /// The folder was a store before, and its database is gone.
    #[error(
        "{0} was a store before, but bates.db is missing or empty: numbers would come twice. Bring the files of the \
         store back together, or begin again at the first number, on purpose: with --new, or with Opening::New in a program"
    )]
    Gone(PathBuf),
    /// Commits are missing whose answers were sent, or it cannot be told whether any are.
    #[error("{path} is not opened: {damage}. Numbers that were issued could come again. {}", .damage.advice())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What was found.
        damage: Damage,
    },
    /// Another program has the database open, after a crash.
    #[error(
        "{0} is open in another program, such as sqlite3: close it. After a crash the log is replaced by a copy that \
         is on disk for sure, and that program would go on with the old one"
    )]
    DatabaseInUse(PathBuf),
    /// There is no room for the copy of the log that is made after a crash.
    #[error("no room to copy {log} after a crash: it takes {bytes} bytes. Make room, and start again")]
    NoRoom {
        /// The log.
        log: PathBuf,
        /// What the copy takes.
        bytes: u64,
    },
    /// The store was moved.
    #[error("this store was left for {0}, and numbering goes on there: it is not served again")]
    Left(Box<str>),
    /// The store is not complete.
    #[error("this store is being filled from {0}: run `bates move-store` again, which finishes it")]
    Arriving(Box<str>),
    /// The database is of another version of Bates.
    #[error(
        "the database has schema version {found}, and this version of Bates needs {needed}: run the version of Bates \
         that created the store"
    )]
    OtherVersion {
        /// The version of the database.
        found: u32,
        /// The version that this program needs.
        needed: u32,
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

/// Why it is not certain that a store has all that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The database with its log ends before the last answer.
    #[error(
        "bates.db and its log (bates.db-wal) end at commit {found} of {answered}. The log is damaged, or an older copy \
         was put back"
    )]
    CommitsMissing {
        /// The last commit that can be read.
        found: u64,
        /// The last commit whose answers were sent.
        answered: u64,
    },
    /// The log is gone.
    #[error("the log (bates.db-wal) that belongs to bates.db is missing")]
    LogMissing,
    /// The log is gone or damaged, and the database is not of one piece without it.
    #[error(
        "bates.db is a mixture of old and new pages: a crash left it while the log (bates.db-wal) was being written \
         into it, and the log is missing or damaged"
    )]
    Mixed,
    /// The state file is gone.
    #[error("bates.state is missing, which says up to which commit numbers were issued")]
    StateMissing,
    /// The state file is damaged.
    #[error("bates.state cannot be read, which says up to which commit numbers were issued")]
    StateUnreadable,
    /// The store was opened to raise its cursors, and is not let go on yet.
    #[error("commits are missing, and `bates floor --accept-loss` was not run yet")]
    NotAccepted,
}

impl Damage {
    /// What an operator can do.
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

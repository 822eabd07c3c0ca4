//! Why a folder could not be opened as a store, and whether numbering may continue after an error of SQLite.

use std::io;
use std::path::{Path, PathBuf};

use bates_core::StoreError;
use rusqlite::ffi::ErrorCode;
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error(
        "{0} is in use by another process, and two processes would issue the same numbers: stop the other one"
    )]
    InUse(PathBuf),
    #[error("{0} is already open in this process: use that handle, or close it first")]
    InUseHere(PathBuf),
    #[error(
        "every user of this machine can read {file}, and so predict numbers of shuffled series: run `chmod -R o= \
         {}` and start again",
        quoted(folder)
    )]
    NotPrivate { folder: PathBuf, file: PathBuf },
    #[error(
        "{0} holds no store: bates.db is missing. If there should be one, look for it: a new store would issue numbers \
         again. To make a first one, run `bates init --store`, or `bates serve --new` once"
    )]
    NoStore(PathBuf),
    #[error(
        "{0} held a store, but bates.db is missing or empty: a new store would issue numbers again. Put bates.db, \
         bates.db-wal and bates.state back, or deliberately start over with --new (in a program: OpenMode::New)"
    )]
    Gone(PathBuf),
    #[error("{0} is no mark of a store, or was damaged: remove it once the store is known to be complete")]
    MarkUnreadable(PathBuf),
    #[error(
        "{0} is the mark of a store that the folder does not hold: look for it, or remove the file to begin anew"
    )]
    MarkWithoutStore(PathBuf),
    #[error(
        "{path} is the mark of the store {found}, and this store is {identity}: give each store a mark file of its own"
    )]
    MarkOfAnother { path: PathBuf, found: Uuid, identity: Uuid },
    #[error("{0} holds a store, or files of one: restore into a new folder, or move this one away first")]
    NotEmpty(PathBuf),
    #[error("cannot open {path}: {damage}. Numbers could be issued again. {}", .damage.advice())]
    Damaged { path: PathBuf, damage: Damage },
    #[error(
        "{0} is open in another program, such as sqlite3: close it. After a crash Bates replaces the log by a synced \
         copy, and the other program would continue with the old log"
    )]
    DatabaseInUse(PathBuf),
    #[error("no room to copy {log} after a crash: it needs {bytes} bytes. Make room and start again")]
    NoRoom { log: PathBuf, bytes: u64 },
    #[error("this store was left for {0}, where numbering continues: use that store")]
    Left(Box<str>),
    #[error("this store is being filled from {0}: run `bates move-store` again to finish")]
    Arriving(Box<str>),
    #[error(
        "the database has schema version {found}, but this Bates reads {oldest} to {newest}: run the version of Bates \
         that created the store"
    )]
    OtherVersion { found: u32, oldest: u32, newest: u32 },
    #[error("cannot read the database: {0}")]
    Unreadable(Box<str>),
    #[error("cannot {doing} {path}: {error}")]
    Io { doing: &'static str, path: PathBuf, error: io::Error },
    #[error("cannot open the database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    if path.bytes().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// Why a store may lack commits whose numbers were issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    #[error(
        "bates.db and its log (bates.db-wal) end at commit {found} of {answered}: the log is damaged, or an older copy \
         was put back"
    )]
    CommitsMissing { found: u64, answered: u64 },
    #[error("the log of bates.db (bates.db-wal) is missing")]
    LogMissing,
    #[error(
        "bates.db mixes old and new pages: a crash interrupted the checkpoint of the log (bates.db-wal), and the log is \
         missing or damaged"
    )]
    Mixed,
    #[error("bates.state is missing, which names the last commit whose numbers were issued")]
    StateMissing,
    #[error("bates.state cannot be read, which names the last commit whose numbers were issued")]
    StateUnreadable,
    #[error(
        "it was restored from a backup or lost commits, and neither `bates floor --all` nor `bates floor --accept-loss` \
         was run yet"
    )]
    NotAccepted,
}

impl Damage {
    fn advice(self) -> &'static str {
        if self == Self::Mixed {
            return "Put undamaged copies of bates.db, bates.db-wal and bates.state back. If that is impossible, restore \
                    bates.db from a backup, remove bates.db-wal and bates.state, and raise the cursors with `bates \
                    floor`";
        }
        if self == Self::NotAccepted {
            return "Raise all cursors with `bates floor --all --by 100000`, or by more than was issued since in any scope; \
                    or each one with `bates floor`, and then run `bates floor --accept-loss`";
        }
        "Put undamaged copies of bates.db, bates.db-wal and bates.state back. If that is impossible, raise all cursors with \
         `bates floor --all --by 100000`, by more than may have been issued since; or each one above all issued numbers with \
         `bates floor`, and then run `bates floor --accept-loss`"
    }
}

/// Why one write of a batch failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The whole batch is rolled back.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The store refuses this write only; the rest of the batch is committed.
    #[error(transparent)]
    Refused(#[from] StoreError),
}

pub(crate) type WriteResult<T> = Result<T, WriteError>;

/// A full disk may get room again. After any other failed write, the content of the disk is unknown.
pub(crate) fn write_error(error: &rusqlite::Error) -> StoreError {
    let message = error.to_string().into();
    // The index of the log could not grow, which SQLite does before it writes the commit.
    if error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return StoreError::Unavailable(message);
    }
    // A value that cannot be read: the batch is rolled back.
    if error.sqlite_error().is_none() {
        return StoreError::Unavailable(message);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Unavailable(message)
        }
        _ => StoreError::Poisoned(format!("{message}; open the store again to learn what is on disk").into()),
    }
}

/// A failed read changes nothing.
pub(crate) fn read_error(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_split_or_expand_it() {
        for (path, shown) in
            [("/var/lib/bates", "/var/lib/bates"), ("my dir", "'my dir'"), ("a'b", r"'a'\''b'")]
        {
            assert_eq!(quoted(Path::new(path)), shown);
        }
    }
}

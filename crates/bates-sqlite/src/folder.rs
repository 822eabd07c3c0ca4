//! The folder of a store: its lock against a second process, and whether it was a store before.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::OpenError;

const DATABASE: &str = "bates.db";

/// The log of commits that are not yet in the database itself. SQLite removes it on a clean stop.
const LOG: &str = "bates.db-wal";

/// Locked as long as the store is open. It stays when the database goes, and says what should be there.
const LOCK: &str = "bates.lock";

/// What the lock file says while a store is open, or after a crash; and after a clean stop.
const OPEN: &str = "a Bates store, open or crashed: bates.db and bates.db-wal belong together\n";
const CLOSED: &str = "a Bates store, closed cleanly: all is in bates.db\n";

/// What may be done with a folder that holds no database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A folder that never was a store becomes one; one that was is refused.
    First,
    /// Any folder becomes a store: numbering begins again, on purpose.
    New,
    /// Only a folder that is a store: nothing is made.
    Existing,
}

/// A folder that this process alone has open.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held for its lock, which ends with it.
    lock: File,
    /// Whether the folder should hold cursors already.
    pub(crate) was_store: bool,
}

impl Folder {
    pub(crate) fn open(path: &Path, opening: Opening) -> Result<Self, OpenError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |error| OpenError::Io { doing, path, error }
        };
        if opening == Opening::Existing && !path.join(DATABASE).exists() {
            return Err(OpenError::NoStore(path.to_owned()));
        }
        fs::create_dir_all(path).map_err(failed("make the folder", path))?;
        let lock_path = path.join(LOCK);
        let lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&lock_path)
            .map_err(failed("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &lock_path)(error)),
        }
        let said = fs::read_to_string(&lock_path).map_err(failed("read", &lock_path))?;
        let was_store = !said.is_empty() && opening != Opening::New;
        let is_there = |name: &str| path.join(name).exists();
        if was_store && (!is_there(DATABASE) || said == OPEN && !is_there(LOG)) {
            return Err(OpenError::Gone(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), lock, was_store })
    }

    /// Writes down that the database and its log belong together from now on.
    pub(crate) fn mark_open(&self) -> Result<(), OpenError> {
        self.mark(OPEN).map_err(|error| OpenError::Io { doing: "write", path: self.path.join(LOCK), error })
    }

    /// Writes down that the database is whole without its log, if it is: SQLite has removed the log.
    pub(crate) fn mark_closed(&self) {
        if !self.path.join(LOG).exists() {
            // If it cannot be written, the next start asks for a log that is not there, and refuses: safe.
            let _ = self.mark(CLOSED);
        }
    }

    fn mark(&self, said: &str) -> io::Result<()> {
        // Written over before it is cut: on a full disk an emptied file could stay empty, and would no longer say
        // that there was a store.
        self.lock.write_all_at(said.as_bytes(), 0)?;
        self.lock.set_len(said.len() as u64)?;
        self.lock.sync_all()
    }

    pub(crate) fn gone(&self) -> OpenError {
        OpenError::Gone(self.path.clone())
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Syncs the folder itself, so that a database made just now is still in it after a power cut.
    pub(crate) fn sync(&self) -> Result<(), OpenError> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| OpenError::Io { doing: "sync the folder", path: self.path.clone(), error })
    }
}

/// A process that is being started by this one has a copy of the file until it is another program: closing alone would
/// leave the lock to it for that moment.
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

//! The folder of a store: its lock against a second process, and whether it was a store before.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

const DATABASE: &str = "bates.db";

/// Locked as long as the store is open. It stays when the database goes, and so tells that there was one.
const LOCK: &str = "bates.lock";

/// What may be done with a folder that holds no database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A folder that never was a store becomes one; one that was is refused.
    First,
    /// Any folder becomes a store: numbering begins again, on purpose.
    New,
}

/// A folder that this process alone has open.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held for its lock, which ends with it.
    _lock: File,
}

impl Folder {
    pub(crate) fn open(path: &Path, opening: Opening) -> Result<Self, OpenError> {
        let io = |doing, path: &Path| {
            let path = path.to_owned();
            move |error| OpenError::Io { doing, path, error }
        };
        fs::create_dir_all(path).map_err(io("make the folder", path))?;
        let lock_path = path.join(LOCK);
        let was_store = lock_path.exists();
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(io("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(io("lock", &lock_path)(error)),
        }
        if was_store && !path.join(DATABASE).exists() && opening == Opening::First {
            return Err(OpenError::Gone(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
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

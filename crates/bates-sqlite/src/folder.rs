//! The folder of a store: made durably, locked against a second process, and the names of what is in it.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bates_core::ProcessGuard;
use parking_lot::Mutex;

use crate::error::OpenError;

const DATABASE: &str = "bates.db";

/// The log of commits that are not yet in the database itself. A clean stop removes it.
const LOG: &str = "bates.db-wal";

const STATE: &str = "bates.state";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// A store, or a folder that never was one and becomes one.
    First,
    /// As [`Opening::First`]; where the database of a store is missing or empty, numbering begins again, on purpose.
    New,
    /// Only a folder that is a store: nothing is made.
    Existing,
    /// As [`Opening::Existing`], but also a store that is refused because commits are missing. It issues nothing until
    /// [`SqliteStore::accept_loss`](crate::SqliteStore::accept_loss): first its cursors have to be raised.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The folder itself: a file in it could be removed or replaced, and the lock with it.
    lock: File,
    id: FolderId,
    process: ProcessGuard,
}

type FolderId = (u64, u64);

/// The folders that this process has open. Never waited for: in a fork the holder of the lock may not exist.
static OPEN: Mutex<BTreeMap<FolderId, ProcessGuard>> = Mutex::new(BTreeMap::new());

fn id_of(folder: &File) -> io::Result<FolderId> {
    folder.metadata().map(|found| (found.dev(), found.ino()))
}

impl Folder {
    pub(crate) fn open(path: &Path, opening: OpenMode) -> Result<Self, OpenError> {
        let is_made = matches!(opening, OpenMode::First | OpenMode::New);
        if !is_made && !path.join(DATABASE).exists() {
            return Err(OpenError::NoStore(path.to_owned()));
        }
        make(path)?;
        let lock = File::open(path).map_err(failed("open the folder", path))?;
        let id = id_of(&lock).map_err(failed("look at the folder", path))?;
        try_lock(&lock, path, id)?;
        let process = ProcessGuard::current();
        if let Some(mut open) = OPEN.try_lock() {
            open.insert(id, process.clone());
        }
        Ok(Self { path: path.to_owned(), lock, id, process })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.path.join(STATE)
    }

    pub(crate) fn has_database(&self) -> bool {
        fs::metadata(self.database()).is_ok_and(|database| database.len() > 0)
    }

    /// Syncs the folder itself, so that files made or renamed just now are still in it after a power cut.
    pub(crate) fn sync(&self) -> Result<(), OpenError> {
        self.lock.sync_all().map_err(failed("sync the folder", &self.path))
    }
}

/// Unlocks before it closes: a child process that is being started has a copy of the descriptor, and with it the lock.
/// A fork leaves the lock to its parent.
impl Drop for Folder {
    fn drop(&mut self) {
        if self.process.is_forked() {
            return;
        }
        if let Some(mut open) = OPEN.try_lock() {
            open.remove(&self.id);
        }
        let _ = self.lock.unlock();
    }
}

pub(crate) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |error| OpenError::Io { doing, path, error }
}

/// Makes missing folders, and syncs each with its name in its parent: a power cut could remove the whole folder otherwise.
fn make(path: &Path) -> Result<(), OpenError> {
    // The parent of `data` is "", which is the current folder.
    let named =
        |folder: &Path| if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.to_owned();
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !named(folder).exists()).collect();
    let Some(highest) = missing.last() else { return Ok(()) };
    fs::create_dir_all(path).map_err(failed("make the folder", path))?;
    for folder in missing.iter().copied().chain(highest.parent()).map(named) {
        let synced = File::open(&folder).and_then(|folder| folder.sync_all());
        synced.map_err(failed("sync the folder", &folder))?;
    }
    Ok(())
}

fn try_lock(file: &File, folder: &Path, id: FolderId) -> Result<(), OpenError> {
    let is_open_here = || OPEN.try_lock().is_some_and(|open| open.get(&id).is_some_and(|by| !by.is_forked()));
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) if is_open_here() => Err(OpenError::InUseHere(folder.to_owned())),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed("lock the folder", folder)(error)),
    }
}

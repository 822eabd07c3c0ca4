//! The folder of a store: created durably, locked against a second process, and the names of its files.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use bates_core::ProcessGuard;
use parking_lot::Mutex;

use crate::error::OpenError;

pub(crate) const DATABASE: &str = "bates.db";

/// The log of commits that are not yet in the database itself. A clean stop removes it.
const LOG: &str = "bates.db-wal";

const STATE: &str = "bates.state";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Opens a store, or creates one in a folder that never held one.
    First,
    /// Like [`OpenMode::First`], but if the database of a store is missing or empty, numbering deliberately starts over.
    New,
    /// Opens an existing store and creates nothing.
    Existing,
    /// Like [`OpenMode::Existing`], but also opens a store that lacks commits. It issues nothing until
    /// [`SqliteStore::accept_loss`](crate::SqliteStore::accept_loss); before that, raise its cursors.
    Stopped,
}

impl OpenMode {
    /// Whether it may create a store where there never was one.
    pub(crate) fn may_create(self) -> bool {
        matches!(self, Self::First | Self::New)
    }
}

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The folder itself: the lock on a file would be lost if the file were removed or replaced.
    lock: File,
    id: FolderId,
    process: ProcessGuard,
}

type FolderId = (u64, u64);

/// The folders that this process has open. Only `try_lock` is used: in a fork, the thread that holds the lock may not exist.
static OPEN: Mutex<BTreeMap<FolderId, ProcessGuard>> = Mutex::new(BTreeMap::new());

impl Folder {
    pub(crate) fn open(path: &Path, mode: OpenMode) -> Result<Self, OpenError> {
        if !mode.may_create() && !path.join(DATABASE).exists() && !path.join(STATE).exists() {
            return Err(OpenError::NoStore(path.to_owned()));
        }
        create_folders(path)?;
        check_private(path)?;
        let lock = File::open(path).map_err(io_error("open the folder", path))?;
        let metadata = lock.metadata().map_err(io_error("read the metadata of the folder", path))?;
        let id = (metadata.dev(), metadata.ino());
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
        has_database(&self.path)
    }

    /// Creates an empty database file that only its owner can read. SQLite gives its other files the same permissions.
    pub(crate) fn create_database(&self) -> Result<(), OpenError> {
        let path = self.database();
        create_private(&path).map(drop).map_err(io_error("create", &path))
    }

    /// Whether users of the folder's group can read the store: they learn the keys of shuffled series.
    pub(crate) fn is_group_readable(&self) -> bool {
        can_read(&self.path, &self.database(), GROUP)
    }

    /// Syncs the folder itself, so that new and renamed files survive a power cut.
    pub(crate) fn sync(&self) -> Result<(), OpenError> {
        self.lock.sync_all().map_err(io_error("sync the folder", &self.path))
    }
}

pub(crate) fn has_database(folder: &Path) -> bool {
    fs::metadata(folder.join(DATABASE)).is_ok_and(|database| database.len() > 0)
}

/// Unlocks explicitly: a child process that is being started has a copy of the descriptor, which would keep the lock.
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

pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |error| OpenError::Io { doing, path, error }
}

const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;

/// Opens or creates a file that only its owner can read and write, whatever the umask is.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// The database holds the keys of shuffled series: a user who can read it can predict their numbers.
fn check_private(path: &Path) -> Result<(), OpenError> {
    let files = [DATABASE, LOG].map(|name| path.join(name));
    match files.into_iter().find(|file| can_read(path, file, OTHERS)) {
        Some(file) => Err(OpenError::NotPrivate { folder: path.to_owned(), file }),
        None => Ok(()),
    }
}

/// Whether these users can search the folder, and read or write the file.
fn can_read(folder: &Path, file: &Path, users: u32) -> bool {
    let mode = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.mode());
    mode(folder) & users & 0o111 != 0 && mode(file) & users & 0o666 != 0
}

/// Creates missing folders and syncs each one and its parent: otherwise a power cut could remove the whole folder.
fn create_folders(path: &Path) -> Result<(), OpenError> {
    // The parent of `data` is "", which is the current folder.
    let named =
        |folder: &Path| if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.to_owned();
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !named(folder).exists()).collect();
    let Some(highest) = missing.last() else { return Ok(()) };
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    let private = created.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o700)));
    private.map_err(io_error("create the folder", path))?;
    for folder in missing.iter().copied().chain(highest.parent()).map(named) {
        let synced = File::open(&folder).and_then(|folder| folder.sync_all());
        synced.map_err(io_error("sync the folder", &folder))?;
    }
    Ok(())
}

fn try_lock(file: &File, folder: &Path, id: FolderId) -> Result<(), OpenError> {
    let is_open_here =
        || OPEN.try_lock().is_some_and(|open| open.get(&id).is_some_and(|process| !process.is_forked()));
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) if is_open_here() => Err(OpenError::InUseHere(folder.to_owned())),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(io_error("lock the folder", folder)(error)),
    }
}

//! The log (SQLite's WAL) that a crash left behind. SQLite must never read it before all of it is on disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use crate::error::OpenError;
use crate::folder::{Folder, create_private, io_error};

const CHUNK_BYTES: usize = 1 << 20;

/// Replaces the log by a synced copy, and returns whether it has any content. Syncing the log itself is not enough: after
/// a failed sync, the kernel may treat pages as written that are not on disk.
pub(crate) fn make_durable(folder: &Folder) -> Result<bool, OpenError> {
    let log = folder.log();
    let copy_path = log.with_extension("db-wal-copy");
    let _ = fs::remove_file(&copy_path);
    let bytes = match fs::metadata(&log) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(io_error("read the metadata of", &log)(error)),
    };
    if bytes == 0 {
        return Ok(false);
    }
    let database = lock_database(&folder.database())?;
    if let Err(error) = copy(&log, &copy_path) {
        let _ = fs::remove_file(&copy_path);
        let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        return Err(if is_full { OpenError::NoRoom { log, bytes } } else { io_error("copy", &log)(error) });
    }
    fs::rename(&copy_path, &log).map_err(io_error("replace", &log))?;
    folder.sync()?;
    drop(database);
    Ok(true)
}

/// Another program that has the database open, such as `sqlite3`, would continue with the replaced log.
/// Invariant: SQLite has not opened the database in this process yet: closing this descriptor would release its locks.
fn lock_database(path: &Path) -> Result<File, OpenError> {
    let database = File::options().read(true).write(true).open(path).map_err(io_error("open", path))?;
    match fcntl_lock(&database, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(database),
        Err(Errno::AGAIN | Errno::ACCESS) => Err(OpenError::DatabaseInUse(path.to_owned())),
        Err(error) => Err(io_error("lock", path)(error.into())),
    }
}

/// Reads and writes every byte; [`fs::copy`] may share disk blocks with the original.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, create_private(to)?);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk)?;
        if read == 0 {
            return to.sync_all();
        }
        to.write_all(&chunk[..read])?;
    }
}

//! The log that a crash left. Must never be read by SQLite before all of it is on disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use crate::error::OpenError;
use crate::folder::{Folder, failed};

const CHUNK_BYTES: usize = 1 << 20;

/// Puts a synced copy of the log in its place; answers whether there is anything in it.
/// After a failed sync the kernel may take pages for written that are not on disk: a power cut would lose them.
pub(crate) fn secure(folder: &Folder) -> Result<bool, OpenError> {
    let log = folder.log();
    let copied = log.with_extension("db-wal-copy");
    let _ = fs::remove_file(&copied);
    let bytes = match fs::metadata(&log) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(failed("look at", &log)(error)),
    };
    if bytes == 0 {
        return Ok(false);
    }
    let database = lock_database(&folder.database())?;
    if let Err(error) = copy(&log, &copied) {
        let _ = fs::remove_file(&copied);
        let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        return Err(if is_full { OpenError::NoRoom { log, bytes } } else { failed("copy", &log)(error) });
    }
    fs::rename(&copied, &log).map_err(failed("replace", &log))?;
    folder.sync()?;
    drop(database);
    Ok(true)
}

/// Another program that has the database open, such as `sqlite3`, would go on with the log that is replaced here.
/// Invariant: SQLite has not opened the database in this process yet. Closing a second descriptor would end its locks.
fn lock_database(path: &Path) -> Result<File, OpenError> {
    let database = File::options().read(true).write(true).open(path).map_err(failed("open", path))?;
    match fcntl_lock(&database, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(database),
        Err(Errno::AGAIN | Errno::ACCESS) => Err(OpenError::DatabaseInUse(path.to_owned())),
        Err(error) => Err(failed("lock", path)(error.into())),
    }
}

/// Reads and writes every byte. [`fs::copy`] may share blocks on disk with the original instead.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk)?;
        if read == 0 {
            return to.sync_all();
        }
        to.write_all(&chunk[..read])?;
    }
}

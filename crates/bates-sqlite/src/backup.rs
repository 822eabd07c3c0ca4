//! A copy of a store in one file, also while a server has it open; and a store from such a copy, which issues nothing until
//! its cursors are raised.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use uuid::Uuid;

use crate::error::OpenError;
use crate::folder::{Folder, OpenMode, create_private, has_database, io_error};
use crate::open::{check_integrity, create_state};
use crate::state_file::{Content, Phase};
use crate::write::to_u64;
use crate::{progress, schema};

/// What a file that [`backup`] wrote holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupContent {
    pub identity: Uuid,
    pub series: u64,
    pub scopes: u64,
    pub commits: u64,
    /// When the last commit was made.
    pub seen_at: Option<Timestamp>,
    pub bytes: u64,
}

/// Writes all that is committed in the store of a folder to a new file, which only its owner can read. Callers of a server
/// that has the folder open do not wait for it.
pub fn backup(folder: &Path, file: &Path) -> Result<BackupContent, OpenError> {
    if !has_database(folder) {
        return Err(OpenError::NoStore(folder.to_owned()));
    }
    if file.exists() {
        let error = io::Error::new(io::ErrorKind::AlreadyExists, "it exists already");
        return Err(io_error("write the backup", file)(error));
    }
    let path = folder.join(crate::folder::DATABASE);
    // Read-only: otherwise the last connection would remove the log at its end.
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let unfinished = file.with_added_extension("unfinished");
    create_private(&unfinished).map_err(io_error("write the backup", &unfinished))?;
    let text = unfinished.to_string_lossy();
    let written = connection.execute("VACUUM INTO ?", [&text]).map_err(OpenError::from);
    let checked = written.and_then(|_| read(&unfinished));
    let content = checked.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    let synced = File::open(&unfinished).and_then(|copy| copy.sync_all());
    synced.and_then(|()| fs::rename(&unfinished, file)).map_err(io_error("write the backup", file))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error("sync the folder", folder))?;
    Ok(content)
}

/// Checks a backup, and tells what it holds.
pub fn read(file: &Path) -> Result<BackupContent, OpenError> {
    let bytes = fs::metadata(file).map_err(io_error("read the backup", file))?.len();
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    check_integrity(&connection)?;
    if schema::is_missing(&connection)? {
        return Err(OpenError::NoStore(file.to_owned()));
    }
    let sql = "SELECT (SELECT id FROM identity), count(*), coalesce(sum(scopes), 0) FROM series";
    let (identity, series, scopes) = connection.query_row(sql, [], |row| {
        Ok((Uuid::from_bytes(row.get(0)?), to_u64(row.get(1)?), to_u64(row.get(2)?)))
    })?;
    let progress::Progress { commits, seen_at } = progress::read(&connection)?;
    let seen_at = seen_at.and_then(|millis| Timestamp::from_millisecond(millis).ok());
    Ok(BackupContent { identity, series, scopes, commits, seen_at, bytes })
}

/// Makes the store of a folder that holds none from a backup. It issues nothing until
/// [`SqliteStore::accept_loss`](crate::SqliteStore::accept_loss); before that, raise its cursors.
pub fn restore(file: &Path, path: &Path) -> Result<BackupContent, OpenError> {
    let content = read(file)?;
    let folder = Folder::open(path, OpenMode::First)?;
    if folder.has_database() || folder.state_file().exists() || folder.log().exists() {
        return Err(OpenError::NotEmpty(path.to_owned()));
    }
    // Before the database: a store that lacks it is refused, and one without this file would issue numbers again.
    create_state(&folder, Content { phase: Phase::Stopped, commits: content.commits })?;
    let failed = |error| io_error("restore", &folder.database())(error);
    let copied = File::open(file).and_then(|mut from| {
        let mut to = create_private(&folder.database())?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    });
    copied.map_err(failed)?;
    folder.sync()?;
    Ok(content)
}

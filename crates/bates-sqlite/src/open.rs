//! How a folder is opened as a store. Its content is judged before anything is written: a refused folder stays as it was.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bates_core::MoveMark;
use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, TransactionBehavior};
use uuid::Uuid;

use crate::SqliteStore;
use crate::checkpoint::{self, CheckpointError};
use crate::error::{Damage, OpenError};
use crate::folder::{Folder, OpenMode, failed};
use crate::outbox::{Steady, deliver};
use crate::planted::{Bug, is_planted};
use crate::progress::{self, Progress};
use crate::state_file::{Content, Found, Phase, StateFile};
use crate::writer::Writer;
use crate::{held, log, schema};

/// Only an operator with `sqlite3` can be in the way.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const STATEMENTS_MAX: usize = 64;

/// Page cache of each connection: a million cursors. Without it each grant would read its page from the file.
const CACHE_KIB_MAX: i32 = 64 * 1024;

pub(crate) struct Opened {
    pub(crate) folder: Folder,
    pub(crate) writer: Writer,
    pub(crate) reader: Connection,
    pub(crate) identity: Uuid,
}

pub(crate) fn open(path: &Path, opening: OpenMode, mark: Option<&MoveMark>) -> Result<Opened, OpenError> {
    let folder = Folder::open(path, opening)?;
    let found = StateFile::find(&folder.state_file()).map_err(failed("read", &folder.state_file()))?;
    let how = How { opening, mark };
    let Judged { state, mut connection, has_log } =
        if folder.has_database() { judge(&folder, found, how)? } else { begin(&folder, &found, how)? };
    let is_new = schema::create(&mut connection, mark)?;
    let steady = Steady::new();
    let (run, commits) = begin_run(&mut connection, steady.now())?;
    let reader = connect(&folder)?;
    let identity =
        connection.query_row("SELECT id FROM identity", [], |row| row.get(0).map(Uuid::from_bytes))?;
    if has_log || is_new {
        empty_log(&folder, &connection, &state)?;
    }
    state.open(commits).map_err(failed("write", &folder.state_file()))?;
    folder.sync()?;
    let writer = Writer { connection, state: Arc::new(state), steady, run, commits };
    Ok(Opened { folder, writer, reader, identity })
}

impl SqliteStore {
    /// Makes a folder that only a move fills, before the old store is left: a move that is killed then leaves no folder
    /// that becomes a new store. Answers whether the folder is new.
    pub fn reserve(path: &Path) -> Result<bool, OpenError> {
        let is_new = !path.exists();
        let folder = Folder::open(path, OpenMode::First)?;
        let found = StateFile::find(&folder.state_file()).map_err(failed("read", &folder.state_file()))?;
        if !folder.has_database() && matches!(found, Found::Missing) {
            create(&folder, Content { phase: Phase::Arriving, commits: 0 })?;
            return Ok(is_new);
        }
        Ok(false)
    }

    /// Takes a reservation back, and removes an empty folder, unless another run of the move uses it.
    pub fn unreserve(path: &Path) -> Result<(), OpenError> {
        let folder = match Folder::open(path, OpenMode::First) {
            Err(OpenError::InUse(_) | OpenError::InUseHere(_)) => return Ok(()),
            folder => folder?,
        };
        let state = folder.state_file();
        let is_reserved = match StateFile::find(&state).map_err(failed("read", &state))? {
            Found::Readable(found) => found.content().phase == Phase::Arriving,
            Found::Missing | Found::Unreadable => false,
        };
        if is_reserved && !folder.has_database() {
            std::fs::remove_file(&state).map_err(failed("remove", &state))?;
            // A folder that was there before may hold other files.
            let _ = std::fs::remove_dir(path);
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct How<'m> {
    opening: OpenMode,
    mark: Option<&'m MoveMark>,
}

struct Judged {
    state: StateFile,
    connection: Connection,
    /// Whether a log that is not empty was left.
    has_log: bool,
}

fn begin(folder: &Folder, found: &Found, how: How<'_>) -> Result<Judged, OpenError> {
    let phase = match found {
        Found::Missing => Phase::New,
        Found::Unreadable => Phase::Stopped,
        Found::Readable(state) => state.content().phase,
    };
    let may_begin = match phase {
        Phase::New => true,
        Phase::Arriving => how.mark.is_some(),
        _ => how.opening == OpenMode::New,
    };
    if !may_begin {
        return Err(match phase {
            Phase::Arriving => OpenError::Arriving("another store".into()),
            _ => OpenError::Gone(folder.path().to_owned()),
        });
    }
    // A move that is killed here leaves a folder that is no new store.
    let phase = if how.mark.is_some() { Phase::Arriving } else { Phase::New };
    let state = create(folder, Content { phase, commits: 0 })?;
    Ok(Judged { state, connection: connect(folder)?, has_log: false })
}

fn judge(folder: &Folder, found: Found, how: How<'_>) -> Result<Judged, OpenError> {
    let has_log_file = folder.log().exists();
    // Invariant: a missing log is noticed before SQLite opens the database, which creates an empty one.
    let found = match damage_of_files(&found, has_log_file) {
        Some(damage) => Found::Readable(refuse_or_stop(folder, &found, damage, how.opening)?),
        None => found,
    };
    let has_log = log::secure(folder)?;
    let Some((connection, damage)) = read(folder, &found).map_err(|error| mixed(folder, &found, error))?
    else {
        return begin(folder, &found, how);
    };
    let state = match (damage, found) {
        (None, Found::Readable(state)) => state,
        (damage, found) => {
            refuse_or_stop(folder, &found, damage.unwrap_or(Damage::StateMissing), how.opening)?
        }
    };
    if state.is_stopped() {
        check_integrity(&connection)?;
    }
    Ok(Judged { state, connection, has_log })
}

fn damage_of_files(found: &Found, has_log_file: bool) -> Option<Damage> {
    let phase = match found {
        Found::Unreadable => return Some(Damage::StateUnreadable),
        Found::Missing => return None,
        Found::Readable(state) => state.content().phase,
    };
    match phase {
        Phase::Stopped => Some(Damage::NotAccepted),
        Phase::Open if !has_log_file => Some(Damage::LogMissing),
        Phase::Checkpoint if !has_log_file => Some(Damage::Mixed),
        _ => None,
    }
}

/// Opens the database; answers with what is wrong with it, or `None` if it has no schema.
fn read(folder: &Folder, found: &Found) -> Result<Option<(Connection, Option<Damage>)>, OpenError> {
    let connection = connect(folder)?;
    if schema::is_missing(&connection)? {
        return Ok(None);
    }
    let damage = match found {
        Found::Readable(state) => damage_of_database(state.content(), &connection)?,
        Found::Missing | Found::Unreadable => Some(Damage::StateMissing),
    };
    Ok(Some((connection, damage)))
}

/// A database that cannot be read while its log was being written into it lacks the log.
fn mixed(folder: &Folder, found: &Found, error: OpenError) -> OpenError {
    match (found, &error) {
        (Found::Readable(state), OpenError::Sqlite(corrupt))
            if state.content().phase == Phase::Checkpoint
                && corrupt.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) =>
        {
            OpenError::Damaged { path: folder.path().to_owned(), damage: Damage::Mixed }
        }
        _ => error,
    }
}

fn damage_of_database(state: Content, connection: &Connection) -> rusqlite::Result<Option<Damage>> {
    let Content { phase, commits: answered } = state;
    let Progress { commits, .. } = progress::read(connection)?;
    if phase == Phase::Stopped || is_planted(Bug::OpenBelowAnswered) {
        return Ok(None);
    }
    if phase == Phase::Checkpoint && checkpoint::log_pages(connection)? == 0 {
        return Ok(Some(Damage::Mixed));
    }
    Ok((commits < answered).then_some(Damage::CommitsMissing { found: commits, answered }))
}

fn refuse_or_stop(
    folder: &Folder,
    found: &Found,
    damage: Damage,
    opening: OpenMode,
) -> Result<StateFile, OpenError> {
    if opening != OpenMode::Stopped || damage == Damage::Mixed {
        return Err(OpenError::Damaged { path: folder.path().to_owned(), damage });
    }
    let commits = if let Found::Readable(state) = found { state.content().commits } else { 0 };
    create(folder, Content { phase: Phase::Stopped, commits })
}

fn create(folder: &Folder, content: Content) -> Result<StateFile, OpenError> {
    let path = folder.state_file();
    let state = StateFile::create(&path, content).map_err(failed("make", &path))?;
    folder.sync()?;
    Ok(state)
}

/// What every opening writes: earlier claims end, and the time while the store was closed does not count.
fn begin_run(connection: &mut Connection, now: i64) -> rusqlite::Result<(i64, u64)> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Progress { commits, seen_at } = progress::read(&transaction)?;
    deliver::release(&transaction, now)?;
    if let Some(seen_at) = seen_at {
        deliver::postpone(&transaction, now - seen_at)?;
    }
    let run = held::begin(&transaction)?;
    progress::raise(&transaction, commits + 1, now)?;
    transaction.commit()?;
    Ok((run, commits + 1))
}

/// A log that cannot be emptied, because the disk is full or a reader in the way, stays as it is: nothing is lost.
fn empty_log(folder: &Folder, connection: &Connection, state: &StateFile) -> Result<(), OpenError> {
    match checkpoint::empty(connection, state) {
        Ok(_) => Ok(()),
        Err(error) if !error.is_of_disk() => Ok(()),
        Err(CheckpointError::Sqlite(error)) => Err(error.into()),
        Err(CheckpointError::State(error)) => Err(failed("write", &folder.state_file())(error)),
    }
}

/// Without the state file it is not known whether the log was being written into the database.
fn check_integrity(connection: &Connection) -> Result<(), OpenError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(OpenError::Unreadable(found.into())) }
}

/// Invariant: `synchronous=FULL` in WAL mode syncs every commit; with `NORMAL` a power cut would take commits
/// back, and their numbers would come again.
///
/// Invariant: SQLite neither writes the log into the database by itself nor removes it when it closes: a refused opening
/// must change nothing.
pub(crate) fn connect(folder: &Folder) -> Result<Connection, OpenError> {
    let connection = Connection::open(folder.database())?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = if is_planted(Bug::SkipSync) { "OFF" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // SQLite takes a negative size for KiB.
    connection.pragma_update(None, "cache_size", -CACHE_KIB_MAX)?;
    // Plans must not depend on bound values: with partial indexes, each binding would parse the statement again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

//! Opens a folder as a store. The files are checked before anything is written: a refused folder stays unchanged.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bates_core::MoveMark;
use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, TransactionBehavior};
use uuid::Uuid;

use crate::checkpoint::{self, CheckpointError};
use crate::error::{Damage, OpenError};
use crate::folder::{Folder, OpenMode, io_error};
use crate::mark_file::MarkFile;
use crate::new_scopes::NewScopes;
use crate::outbox::{SteadyClock, deliver};
use crate::planted::{Bug, is_planted};
use crate::progress::{self, Progress};
use crate::state_file::{Content, Phase, StateFile, StateFileRead};
use crate::writer::Writer;
use crate::{held, log, new_scopes, schema};

/// Only an operator with `sqlite3` can hold the lock of the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const STATEMENTS_MAX: usize = 64;

/// Page cache of each connection: enough for a million cursors. A smaller one would read pages from the file for grants.
const CACHE_KIB_MAX: i32 = 64 * 1024;

pub(crate) struct Opened {
    pub(crate) folder: Folder,
    pub(crate) writer: Writer,
    pub(crate) reader: Connection,
    pub(crate) identity: Uuid,
    pub(crate) is_new: bool,
}

pub(crate) fn open(
    path: &Path,
    mode: OpenMode,
    mark: Option<&MoveMark>,
    mark_file: Option<&Path>,
) -> Result<Opened, OpenError> {
    let folder = Folder::open(path, mode)?;
    if let Some(file) = mark_file.filter(|file| !folder.has_database() && MarkFile::is_at(file)) {
        return Err(OpenError::MarkWithoutStore(file.to_owned()));
    }
    let state_file = read_state(&folder)?;
    let Database { state, mut connection, has_log } = if folder.has_database() {
        open_database(&folder, state_file, mode, mark)?
    } else {
        create_database(&folder, &state_file, mode, mark)?
    };
    let state = match mark_file.filter(|_| folder.has_database()) {
        Some(file) => check_mark(&folder, state, &connection, mode, file)?,
        None => state,
    };
    let is_new = schema::create_or_migrate(&mut connection, mark)?;
    let clock = SteadyClock::new();
    let (run, commits) = begin_run(&mut connection, clock.now())?;
    let reader = connect(&folder)?;
    let identity =
        connection.query_row("SELECT id FROM identity", [], |row| row.get(0).map(Uuid::from_bytes))?;
    let mut state = state;
    if let Some(file) = mark_file {
        state.set_mark(MarkFile::open(file, identity)?);
    }
    if has_log || is_new {
        empty_log(&folder, &connection, &state)?;
    }
    state.open(commits).map_err(io_error("write", &folder.state_file()))?;
    folder.sync()?;
    let new_scopes = NewScopes::new(&connection, run)?;
    let writer = Writer { connection, state: Arc::new(state), clock, run, commits, new_scopes };
    Ok(Opened { folder, writer, reader, identity, is_new })
}

struct Database {
    state: StateFile,
    connection: Connection,
    /// Whether the log was not empty before the database was opened.
    has_log: bool,
}

pub(crate) fn read_state(folder: &Folder) -> Result<StateFileRead, OpenError> {
    let path = folder.state_file();
    StateFile::find(&path).map_err(io_error("read", &path))
}

fn create_database(
    folder: &Folder,
    state_file: &StateFileRead,
    mode: OpenMode,
    mark: Option<&MoveMark>,
) -> Result<Database, OpenError> {
    let phase = match state_file {
        StateFileRead::Missing => Phase::New,
        StateFileRead::Unreadable => Phase::Stopped,
        StateFileRead::Readable(state) => state.content().phase,
    };
    let may_create = match phase {
        Phase::New => mode.may_create(),
        Phase::Arriving => mark.is_some(),
        _ => mode == OpenMode::New,
    };
    if !may_create {
        return Err(match phase {
            Phase::Arriving => OpenError::Arriving("another store".into()),
            Phase::New => OpenError::NoStore(folder.path().to_owned()),
            _ => OpenError::Gone(folder.path().to_owned()),
        });
    }
    // If a move is killed here, the folder does not become a new store.
    let phase = if mark.is_some() { Phase::Arriving } else { Phase::New };
    let state = create_state(folder, Content { phase, commits: 0 })?;
    folder.create_database()?;
    Ok(Database { state, connection: connect(folder)?, has_log: false })
}

fn open_database(
    folder: &Folder,
    state_file: StateFileRead,
    mode: OpenMode,
    mark: Option<&MoveMark>,
) -> Result<Database, OpenError> {
    let has_log_file = folder.log().exists();
    // Invariant: a missing log is noticed before SQLite opens the database, which creates an empty one.
    let state_file = match damage_of_files(&state_file, has_log_file) {
        Some(damage) => StateFileRead::Readable(refuse_or_stop(folder, &state_file, damage, mode)?),
        None => state_file,
    };
    let has_log = log::make_durable(folder)?;
    let Some((connection, damage)) = connect_and_check(folder, &state_file)
        .map_err(|error| explain_corruption(folder, &state_file, error))?
    else {
        return create_database(folder, &state_file, mode, mark);
    };
    let state = match (damage, state_file) {
        (None, StateFileRead::Readable(state)) => state,
        (damage, state_file) => {
            refuse_or_stop(folder, &state_file, damage.unwrap_or(Damage::StateMissing), mode)?
        }
    };
    if state.is_stopped() {
        check_integrity(&connection)?;
    }
    Ok(Database { state, connection, has_log })
}

fn damage_of_files(state_file: &StateFileRead, has_log_file: bool) -> Option<Damage> {
    let phase = match state_file {
        StateFileRead::Unreadable => return Some(Damage::StateUnreadable),
        StateFileRead::Missing => return None,
        StateFileRead::Readable(state) => state.content().phase,
    };
    match phase {
        Phase::Stopped => Some(Damage::NotAccepted),
        Phase::Open if !has_log_file => Some(Damage::LogMissing),
        Phase::Checkpoint if !has_log_file => Some(Damage::Mixed),
        _ => None,
    }
}

/// Opens the database and looks for damage. Returns `None` if the database has no schema.
fn connect_and_check(
    folder: &Folder,
    state_file: &StateFileRead,
) -> Result<Option<(Connection, Option<Damage>)>, OpenError> {
    let connection = connect(folder)?;
    if schema::is_missing(&connection)? {
        return Ok(None);
    }
    let damage = match state_file {
        StateFileRead::Readable(state) => damage_of_database(state.content(), &connection)?,
        StateFileRead::Missing | StateFileRead::Unreadable => Some(Damage::StateMissing),
    };
    Ok(Some((connection, damage)))
}

/// A corrupt database whose state file says `Checkpoint` lacks its log.
fn explain_corruption(folder: &Folder, state_file: &StateFileRead, error: OpenError) -> OpenError {
    match (state_file, &error) {
        (StateFileRead::Readable(state), OpenError::Sqlite(corrupt))
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

/// Refuses a store with fewer commits than its mark file, before anything is written to it.
fn check_mark(
    folder: &Folder,
    state: StateFile,
    connection: &Connection,
    mode: OpenMode,
    file: &Path,
) -> Result<StateFile, OpenError> {
    if schema::is_missing(connection)? {
        return Ok(state);
    }
    let identity =
        connection.query_row("SELECT id FROM identity", [], |row| row.get(0).map(Uuid::from_bytes))?;
    let (answered, found) = (MarkFile::open(file, identity)?.commits(), progress::read(connection)?.commits);
    if state.is_stopped() || found >= answered {
        return Ok(state);
    }
    let damage = Damage::CommitsMissing { found, answered };
    refuse_or_stop(folder, &StateFileRead::Readable(state), damage, mode)
}

fn refuse_or_stop(
    folder: &Folder,
    state_file: &StateFileRead,
    damage: Damage,
    mode: OpenMode,
) -> Result<StateFile, OpenError> {
    if mode != OpenMode::Stopped || damage == Damage::Mixed {
        return Err(OpenError::Damaged { path: folder.path().to_owned(), damage });
    }
    let commits = if let StateFileRead::Readable(state) = state_file { state.content().commits } else { 0 };
    create_state(folder, Content { phase: Phase::Stopped, commits })
}

pub(crate) fn create_state(folder: &Folder, content: Content) -> Result<StateFile, OpenError> {
    let path = folder.state_file();
    let state = StateFile::create(&path, content).map_err(io_error("create", &path))?;
    folder.sync()?;
    Ok(state)
}

/// Starts a new run: ends the claims of earlier runs, and does not count the time while the store was closed.
fn begin_run(connection: &mut Connection, now: i64) -> rusqlite::Result<(i64, u64)> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Progress { commits, seen_at } = progress::read(&transaction)?;
    deliver::end_claims(&transaction, now)?;
    if let Some(seen_at) = seen_at {
        deliver::shift_deadlines(&transaction, now - seen_at)?;
    }
    new_scopes::merge_left(&transaction)?;
    let run = held::begin_run(&transaction)?;
    progress::raise(&transaction, commits + 1, now)?;
    transaction.commit()?;
    Ok((run, commits + 1))
}

/// If the disk is full or a reader blocks the checkpoint, the log stays as it is: nothing is lost.
fn empty_log(folder: &Folder, connection: &Connection, state: &StateFile) -> Result<(), OpenError> {
    match checkpoint::empty(connection, state) {
        Ok(_) => Ok(()),
        Err(error) if !error.is_disk_failure() => Ok(()),
        Err(CheckpointError::Sqlite(error)) => Err(error.into()),
        Err(CheckpointError::State(error)) => Err(io_error("write", &folder.state_file())(error)),
    }
}

/// Without the state file it is unknown whether a checkpoint was running at the crash.
pub(crate) fn check_integrity(connection: &Connection) -> Result<(), OpenError> {
    let report: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if report == "ok" { Ok(()) } else { Err(OpenError::Unreadable(report.into())) }
}

/// Invariant: `synchronous=FULL` syncs every commit. With `NORMAL`, numbers could be issued again after a power cut.
///
/// Invariant: SQLite neither checkpoints by itself nor removes the log when it closes: a refused store must not change.
pub(crate) fn connect(folder: &Folder) -> Result<Connection, OpenError> {
    let connection = Connection::open(folder.database())?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = if is_planted(Bug::SkipSync) { "OFF" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A negative size is in KiB.
    connection.pragma_update(None, "cache_size", -CACHE_KIB_MAX)?;
    // Plans must not depend on bound values: with partial indexes, each binding would parse the statement again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

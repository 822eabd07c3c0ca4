//! The folder of a store: opened by one process at a time, created once, and never silently created again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bates_core::store::prelude::*;
use bates_core::{Definition, GrantPurpose, GrantRequest, Move, MoveMark, ScopeId, ScopeKey};
use bates_sqlite::{Damage, OpenError, OpenMode, SqliteStore};
use tempfile::TempDir;

fn open(folder: &TempDir, mode: OpenMode) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(folder.path(), mode)
}

fn scope_id() -> ScopeId {
    ScopeId { series: "counter".parse().unwrap(), scope: ScopeKey::new([("name", "a")], None).unwrap() }
}

async fn grant(store: &SqliteStore) -> u64 {
    let definition = Definition {
        series: scope_id().series,
        template: "{seq}".into(),
        parameters: "name".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    };
    store.pin(definition, None).await.unwrap();
    store.grant(request()).await.unwrap().range.from()
}

fn request() -> GrantRequest {
    GrantRequest {
        scope_id: scope_id(),
        count: 10,
        count_needed: 10,
        start: 1,
        end: 1000,
        scopes_max: 9,
        purpose: GrantPurpose::Hold,
        promise: None,
        held_from: None,
    }
}

fn copy_all(from: &TempDir, to: &TempDir) {
    for file in fs::read_dir(from.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.path().join(file.file_name())).unwrap();
    }
}

/// Why a folder is refused.
fn damage(folder: &TempDir, mode: OpenMode) -> Damage {
    match open(folder, mode) {
        Err(OpenError::Damaged { damage, .. }) => damage,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the damaged folder was opened"),
    }
}

#[test]
fn a_folder_is_opened_once_at_a_time() {
    let folder = TempDir::new().unwrap();
    let first = open(&folder, OpenMode::First).unwrap();
    assert!(matches!(open(&folder, OpenMode::First), Err(OpenError::InUseHere(_))));
    assert!(matches!(open(&folder, OpenMode::New), Err(OpenError::InUseHere(_))), "not even as a new store");
    drop(first);
    assert!(open(&folder, OpenMode::First).is_ok());
}

#[tokio::test]
async fn a_missing_database_is_created_again_only_if_opened_as_new() {
    let folder = TempDir::new().unwrap();
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 1);
    for file in fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().is_some_and(|name| name != "bates.state") {
            fs::remove_file(path).unwrap();
        }
    }
    let refused = open(&folder, OpenMode::First).err().unwrap();
    assert!(matches!(refused, OpenError::Gone(_)), "{refused}");
    assert!(refused.to_string().contains("--new"));
    assert_eq!(grant(&open(&folder, OpenMode::New).unwrap()).await, 1);
}

#[tokio::test]
async fn an_emptied_database_is_not_taken_for_a_first_start() {
    let folder = TempDir::new().unwrap();
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 1);
    fs::write(folder.path().join("bates.db"), b"").unwrap();
    assert!(matches!(open(&folder, OpenMode::First), Err(OpenError::Gone(_))));
}

#[tokio::test]
async fn a_database_that_lost_its_log_is_refused() {
    let (folder, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&folder, OpenMode::First).unwrap();
    assert_eq!(grant(&store).await, 1);
    // The files after a crash without the log, which holds the newest commits.
    for name in ["bates.db", "bates.state"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(damage(&copy, OpenMode::First), Damage::LogMissing, "a refused start changes nothing");
    }
    // With its log, the copy is complete.
    fs::copy(folder.path().join("bates.db-wal"), copy.path().join("bates.db-wal")).unwrap();
    assert_eq!(grant(&open(&copy, OpenMode::First).unwrap()).await, 11);
    drop(store);
    assert_eq!(
        grant(&open(&folder, OpenMode::First).unwrap()).await,
        11,
        "a store that was closed cleanly needs no log"
    );
}

/// Tests a store that was closed cleanly, and one that was not.
#[tokio::test]
async fn a_store_without_a_readable_state_file_is_refused() {
    let (folder, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&folder, OpenMode::First).unwrap();
    assert_eq!(grant(&store).await, 1);
    copy_all(&folder, &copy);
    drop(store);
    for folder in [folder, copy] {
        let state = folder.path().join("bates.state");
        let content = fs::read(&state).unwrap();
        fs::remove_file(&state).unwrap();
        for mode in [OpenMode::First, OpenMode::New, OpenMode::Existing] {
            assert_eq!(damage(&folder, mode), Damage::StateMissing);
        }
        fs::write(&state, "garbage").unwrap();
        assert_eq!(damage(&folder, OpenMode::First), Damage::StateUnreadable);
        fs::write(&state, content).unwrap();
        assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 11);
    }
}

#[tokio::test]
async fn an_older_copy_of_the_database_is_refused_until_the_loss_is_accepted() {
    let (folder, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 1);
    copy_all(&folder, &copy);
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 11);
    fs::copy(copy.path().join("bates.db"), folder.path().join("bates.db")).unwrap();
    let Damage::CommitsMissing { found, answered } = damage(&folder, OpenMode::First) else { panic!() };
    assert!(found < answered, "{found} of {answered}");
    for _ in 0..2 {
        // Opened for repair, it issues nothing, and is still refused afterwards.
        let store = open(&folder, OpenMode::Stopped).unwrap();
        assert!(store.grant(request()).await.unwrap_err().to_string().contains("--accept-loss"));
        store.raise_floor(scope_id(), 21, None).await.unwrap();
        drop(store);
        assert_eq!(damage(&folder, OpenMode::First), Damage::NotAccepted);
    }
    assert_eq!(open(&folder, OpenMode::Stopped).unwrap().accept_loss(), Ok(true));
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 21);
}

#[tokio::test]
async fn an_undamaged_store_that_is_opened_for_repair_issues_as_usual() {
    let folder = TempDir::new().unwrap();
    assert!(matches!(open(&folder, OpenMode::Stopped), Err(OpenError::NoStore(_))));
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 1);
    let store = open(&folder, OpenMode::Stopped).unwrap();
    assert_eq!((store.accept_loss(), grant(&store).await), (Ok(false), 11));
    drop(store);
    assert_eq!(grant(&open(&folder, OpenMode::First).unwrap()).await, 21);
}

/// A state file that is removed or replaced while the store runs is complete again after a clean stop.
#[tokio::test]
async fn a_state_file_that_is_removed_while_the_store_is_open_is_written_again() {
    let (folder, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let state = folder.path().join("bates.state");
    for round in 0..2 {
        let store = open(&folder, OpenMode::First).unwrap();
        assert_eq!(grant(&store).await, 1 + round * 20);
        copy_all(&folder, &elsewhere);
        fs::remove_file(&state).unwrap();
        if round == 1 {
            fs::copy(elsewhere.path().join("bates.state"), &state).unwrap();
        }
        assert!(matches!(open(&folder, OpenMode::First), Err(OpenError::InUseHere(_))));
        assert_eq!(grant(&store).await, 11 + round * 20);
    }
}

#[tokio::test]
async fn a_missing_folder_is_created_and_continues_when_reopened() {
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("deep/bates-data");
    let store = SqliteStore::open(&path, OpenMode::First).unwrap();
    assert_eq!(grant(&store).await, 1);
    drop(store);
    assert_eq!(grant(&SqliteStore::open(&path, OpenMode::First).unwrap()).await, 11);
}

#[test]
fn a_database_of_another_version_is_refused() {
    for version in [13, 999] {
        let folder = TempDir::new().unwrap();
        drop(open(&folder, OpenMode::First).unwrap());
        let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
        database.pragma_update(None, "user_version", version).unwrap();
        drop(database);
        let refused = open(&folder, OpenMode::First).err().unwrap();
        assert!(matches!(refused, OpenError::OtherVersion { found, .. } if found == version), "{refused}");
        assert!(refused.to_string().contains("reads 14 to 16"), "{refused}");
    }
}

/// The tables and views of a database, as SQLite describes them.
fn schema(database: &rusqlite::Connection) -> Vec<String> {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Turns a closed store into one of version 14, with the same rows.
fn rewrite_as_version_14(folder: &TempDir) {
    let [path, newer] = ["bates.db", "newer.db"].map(|name| folder.path().join(name));
    fs::rename(&path, &newer).unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database.execute_batch(include_str!("schema_14.sql")).unwrap();
    database.execute("ATTACH ? AS newer", [newer.to_str().unwrap()]).unwrap();
    let mut statement = database.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table'").unwrap();
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for table in tables.map(Result::unwrap) {
        let sql = format!("DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM newer.{table}");
        database.execute_batch(&sql).unwrap();
    }
    database.pragma_update(None, "user_version", 14).unwrap();
    drop(statement);
    database.close().unwrap();
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.path().join("bates.db"), private).unwrap();
    fs::remove_file(newer).unwrap();
}

#[tokio::test]
async fn a_store_of_the_oldest_version_is_migrated_and_continues() {
    let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&old, OpenMode::First).unwrap();
    assert_eq!(grant(&store).await, 1);
    drop(store);
    rewrite_as_version_14(&old);
    let store = open(&old, OpenMode::First).unwrap();
    assert_eq!(grant(&store).await, 11);
    drop((store, open(&new, OpenMode::First).unwrap()));
    let database = |folder: &TempDir| rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    let (migrated, created) = (schema(&database(&old)), schema(&database(&new)));
    assert!(created.iter().any(|sql| sql.contains("new_scopes")), "{created:?}");
    assert_eq!(migrated, created);
}

#[tokio::test]
async fn the_cursor_table_is_readable_and_the_database_uses_a_write_ahead_log() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder, OpenMode::First).unwrap();
    grant(&store).await;
    let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    let row: (String, String, i64) = database
        .query_row("SELECT series, scope, next FROM cursors", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(row, ("counter".to_owned(), "name=a".to_owned(), 11));
    let mode: String = database.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

/// Two runs of a move use one folder: one reserves it, and another may already fill it.
#[tokio::test]
async fn unreserve_does_not_touch_a_store_that_another_run_fills() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("new");
    assert!(SqliteStore::reserve(&folder).unwrap());
    assert!(SqliteStore::open(&folder, OpenMode::First).is_err(), "the folder is reserved for the move");
    SqliteStore::unreserve(&folder).unwrap();
    assert!(!folder.exists());
    assert!(SqliteStore::reserve(&folder).unwrap());
    let (id, run) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
    let mark = MoveMark::Arriving(Move { id, run, other: "old".into() });
    let filled = SqliteStore::open_arriving(&folder, &mark).unwrap();
    SqliteStore::unreserve(&folder).unwrap();
    assert!(folder.join("bates.db").exists(), "another run is filling the folder");
    drop(filled);
    SqliteStore::unreserve(&folder).unwrap();
    let filled = SqliteStore::open_arriving(&folder, &mark).unwrap();
    assert_eq!(
        filled.mark().await,
        Ok(Some(mark)),
        "the store is still there after that run was interrupted"
    );
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_new_store_is_private_whatever_the_folder_above_it_allows() {
    let folder = TempDir::new().unwrap();
    set_mode(folder.path(), 0o777);
    let path = folder.path().join("data");
    let store = SqliteStore::open(&path, OpenMode::First).unwrap();
    grant(&store).await;
    assert!(!store.is_group_readable());
    assert_eq!(mode(&path), 0o700);
    let files: Vec<_> = fs::read_dir(&path).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
}

#[tokio::test]
async fn a_store_in_an_existing_open_folder_has_private_files() {
    let folder = TempDir::new().unwrap();
    set_mode(folder.path(), 0o755);
    let store = open(&folder, OpenMode::First).unwrap();
    grant(&store).await;
    for file in ["bates.db", "bates.db-wal", "bates.db-shm", "bates.state"] {
        assert_eq!(mode(&folder.path().join(file)), 0o600, "{file}");
    }
    drop(store);
    assert!(open(&folder, OpenMode::First).is_ok());
}

#[test]
fn a_store_that_every_user_can_read_is_refused_until_its_mode_is_changed() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder, OpenMode::First).unwrap());
    let database = folder.path().join("bates.db");
    for (in_folder, in_file) in [(0o711, 0o604), (0o711, 0o602), (0o755, 0o644)] {
        set_mode(&database, in_file);
        set_mode(folder.path(), 0o700);
        assert!(open(&folder, OpenMode::First).is_ok(), "other users cannot search the folder");
        set_mode(folder.path(), in_folder);
        let refused = open(&folder, OpenMode::First).err().unwrap();
        assert!(matches!(refused, OpenError::NotPrivate { .. }), "{refused}");
        let advice = format!("chmod -R o= {}", folder.path().display());
        assert!(refused.to_string().contains(&advice), "{refused}");
        set_mode(&database, 0o600);
        assert!(open(&folder, OpenMode::First).is_ok(), "the file itself is private");
    }
}

#[test]
fn group_access_is_allowed_and_noticed() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder, OpenMode::First).unwrap());
    set_mode(folder.path(), 0o770);
    set_mode(&folder.path().join("bates.db"), 0o660);
    assert!(open(&folder, OpenMode::First).unwrap().is_group_readable());
}

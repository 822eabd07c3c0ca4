//! The folder: one process at a time, made once, never silently made again.

use std::fs;

use bates_core::{Audit as _, Definition, Place, Purpose, RecordFilter, ScopeKey, Store, Want};
use bates_sqlite::{OpenError, Opening, SqliteStore};
use tempfile::TempDir;

fn open(folder: &TempDir, opening: Opening) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(folder.path(), opening)
}

fn place() -> Place {
    Place { series: "counter".parse().unwrap(), scope: ScopeKey::new([("name", "a")], None).unwrap() }
}

async fn grant(store: &SqliteStore) -> u64 {
    let definition = Definition {
        series: place().series,
        template: "{seq}".into(),
        parameters: "name".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
    };
    store.pin(definition, None).await.unwrap();
    let want = Want {
        place: place(),
        count: 10,
        least: 10,
        start: 1,
        end: 1000,
        scopes_max: 9,
        purpose: Purpose::Lease,
        promise: None,
        held_from: None,
    };
    store.grant(want).await.unwrap().lease.from()
}

#[test]
fn a_folder_is_opened_once_at_a_time() {
    let folder = TempDir::new().unwrap();
    let first = open(&folder, Opening::First).unwrap();
    assert!(matches!(open(&folder, Opening::First), Err(OpenError::InUse(_))));
    assert!(matches!(open(&folder, Opening::New), Err(OpenError::InUse(_))), "not even on purpose");
    drop(first);
    assert!(open(&folder, Opening::First).is_ok());
}

#[tokio::test]
async fn a_database_that_went_missing_is_not_made_again_unless_asked() {
    let folder = TempDir::new().unwrap();
    assert_eq!(grant(&open(&folder, Opening::First).unwrap()).await, 1);
    for file in fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().is_some_and(|name| name != "bates.lock") {
            fs::remove_file(path).unwrap();
        }
    }
    let refused = open(&folder, Opening::First).err().unwrap();
    assert!(matches!(refused, OpenError::Gone(_)), "{refused}");
    assert!(refused.to_string().contains("--new"));
    assert_eq!(grant(&open(&folder, Opening::New).unwrap()).await, 1);
}

#[tokio::test]
async fn an_emptied_database_is_not_taken_for_a_first_start() {
    let folder = TempDir::new().unwrap();
    assert_eq!(grant(&open(&folder, Opening::First).unwrap()).await, 1);
    fs::write(folder.path().join("bates.db"), b"").unwrap();
    assert!(matches!(open(&folder, Opening::First), Err(OpenError::Gone(_))));
}

#[tokio::test]
async fn a_database_that_lost_its_log_is_refused() {
    let (folder, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&folder, Opening::First).unwrap();
    assert_eq!(grant(&store).await, 1);
    // What a crash leaves, copied without the log: the newest commits are not in it.
    for name in ["bates.db", "bates.lock"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    assert!(matches!(open(&copy, Opening::First), Err(OpenError::Gone(_))));
    // With its log it is whole, as after a crash.
    fs::copy(folder.path().join("bates.db-wal"), copy.path().join("bates.db-wal")).unwrap();
    assert_eq!(grant(&open(&copy, Opening::First).unwrap()).await, 11);
    drop(store);
    assert_eq!(grant(&open(&folder, Opening::First).unwrap()).await, 11, "closed cleanly, no log is needed");
}

#[tokio::test]
async fn a_missing_folder_is_made_and_opened_again_goes_on() {
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("deep/bates-data");
    let store = SqliteStore::open(&path, Opening::First).unwrap();
    assert_eq!(grant(&store).await, 1);
    drop(store);
    assert_eq!(grant(&SqliteStore::open(&path, Opening::First).unwrap()).await, 11);
}

#[test]
fn a_database_of_a_later_version_is_refused() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder, Opening::First).unwrap());
    let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert!(matches!(open(&folder, Opening::First), Err(OpenError::TooNew { found: 999, .. })));
}

#[tokio::test]
async fn the_tables_explain_themselves_and_every_commit_is_synced() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder, Opening::First).unwrap();
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

/// A database of an earlier version gets what it lacks when it is opened.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_from_before_the_audit_is_brought_up_to_date() {
    let folder = TempDir::new().unwrap();
    let first = grant(&open(&folder, Opening::First).unwrap()).await;
    let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    let earlier = "DROP TABLE audit; DROP TABLE client_lease; ALTER TABLE document DROP COLUMN in_doubt;
        PRAGMA user_version = 7";
    database.execute_batch(earlier).unwrap();
    drop(database);
    let store = open(&folder, Opening::Existing).unwrap();
    assert_eq!((first, grant(&store).await), (1, 11), "its cursors go on");
    assert_eq!(store.records(RecordFilter::default(), None, 10).await, Ok(vec![]));
}

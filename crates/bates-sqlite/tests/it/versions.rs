//! Stores of earlier versions, made with the schemas of their time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use bates_core::SeriesStore as _;
use bates_sqlite::{OpenError, OpenMode};
use tempfile::TempDir;

use super::folder::{grant, open};

const VERSION_14: &str = include_str!("schema_14.sql");

/// Each version, and what led to it from 14: a new store of that version had the same tables.
const EARLIER: [(u32, &str); 2] = [(14, ""), (15, include_str!("../../src/migrations/15.sql"))];

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
        assert!(refused.to_string().contains("reads 14 to 17"), "{refused}");
    }
}

/// The tables and views of a database, as SQLite describes them, without comments and white space.
fn schema(database: &rusqlite::Connection) -> Vec<String> {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let plain =
        |line: &str| line.split("--").next().unwrap_or_default().split_whitespace().collect::<String>();
    rows.map(|sql| sql.unwrap().lines().map(plain).collect()).collect()
}

/// Turns a closed store into one of an earlier version, with the same rows.
fn rewrite(folder: &TempDir, version: u32, schema: &str) {
    let [path, newer] = ["bates.db", "newer.db"].map(|name| folder.path().join(name));
    fs::rename(&path, &newer).unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database.execute_batch(schema).unwrap();
    database.execute("ATTACH ? AS newer", [newer.to_str().unwrap()]).unwrap();
    let sql = "SELECT tables.name, (SELECT group_concat(name) FROM pragma_table_info(tables.name, 'main'))
               FROM main.sqlite_schema AS tables WHERE type = 'table'";
    let mut statement = database.prepare(sql).unwrap();
    let columns = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let tables = statement.query_map([], columns).unwrap();
    for (table, columns) in tables.map(Result::unwrap) {
        let sql = format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}"
        );
        database.execute_batch(&sql).unwrap();
    }
    database.pragma_update(None, "user_version", version).unwrap();
    drop(statement);
    database.close().unwrap();
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.path().join("bates.db"), private).unwrap();
    fs::remove_file(newer).unwrap();
}

#[tokio::test]
async fn a_store_of_each_earlier_version_is_migrated_and_continues() {
    for (version, migrations) in EARLIER {
        let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let store = open(&old, OpenMode::First).unwrap();
        assert_eq!(grant(&store).await, 1);
        drop(store);
        rewrite(&old, version, &format!("{VERSION_14}{migrations}"));
        let store = open(&old, OpenMode::Existing).unwrap();
        assert_eq!(grant(&store).await, 11, "version {version}");
        assert!(!store.is_new());
        store.raise_series_floor("counter".parse().unwrap(), 5).await.unwrap();
        drop((store, open(&new, OpenMode::First).unwrap()));
        let database = |folder: &TempDir| rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
        let (migrated, created) = (schema(&database(&old)), schema(&database(&new)));
        assert!(created.iter().any(|sql| sql.contains("new_scopes")), "{created:?}");
        assert_eq!(migrated, created, "version {version}");
    }
}

//! The embedded store passes the suite that every store must pass.

use bates_sqlite::{Opening, SqliteStore};
use bates_testkit::{DataSet, exercise_store};
use tempfile::TempDir;

struct InFolder(TempDir);

impl DataSet for InFolder {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.0.path(), Opening::First).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_conforms() {
    exercise_store(async || InFolder(TempDir::new().unwrap())).await;
}

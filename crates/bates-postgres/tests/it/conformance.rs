//! The shared store passes the suite that every store must pass.

use std::sync::atomic::{AtomicU32, Ordering};

use bates_postgres::{Address, Opening, PostgresStore, Settings};
use bates_testkit::{DataSet, PrivatePostgres, exercise_store};

/// A database of its own in a server that all claims share.
struct InDatabase(Address);

impl DataSet for InDatabase {
    type Store = PostgresStore;

    async fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.0, Settings::default(), Opening::New).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shared_store_conforms() {
    let (server, count) = (PrivatePostgres::start().unwrap(), AtomicU32::new(0));
    exercise_store(async || {
        let name = format!("set{}", count.fetch_add(1, Ordering::Relaxed));
        InDatabase(Address::parse(&super::database(&server, &name).await).unwrap())
    })
    .await;
}

//! The shared store passes the suite that every store must pass.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bates_core::{Audit as _, Pools as _, Record, RecordFilter, Renewal, Server, Settling};
use bates_postgres::{Address, Opening, PostgresStore, Settings};
use bates_testkit::{
    DataSet, PrivatePgBouncer, PrivatePostgres, exercise_audit, exercise_books, exercise_client_leases,
    exercise_move, exercise_outbox, exercise_pools, exercise_store,
};

/// A database of its own in a server that all claims share.
struct InDatabase(Address);

impl DataSet for InDatabase {
    type Store = PostgresStore;

    async fn open(&self) -> PostgresStore {
        // Nothing is claimed of how fast it is.
        let patient = Settings { patience: Duration::from_mins(1), ..Settings::default() };
        PostgresStore::open(&self.0, patient, Opening::New).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shared_store_conforms() {
    let (server, count) = (PrivatePostgres::start().unwrap(), AtomicU32::new(0));
    let fresh = async || {
        let name = format!("set{}", count.fetch_add(1, Ordering::Relaxed));
        InDatabase(Address::parse(&super::database(&server, &name).await).unwrap())
    };
    exercise_store(fresh).await;
    exercise_outbox(fresh).await;
    Box::pin(exercise_books(fresh)).await;
    exercise_pools(fresh).await;
    exercise_audit(fresh).await;
    exercise_client_leases(fresh).await;
}

/// Fault 10: four connections to the server for all who ask, each transaction on another.
#[tokio::test(flavor = "multi_thread")]
async fn the_shared_store_conforms_behind_pgbouncer_in_transaction_mode() {
    let (server, count) = (PrivatePostgres::start().unwrap(), AtomicU32::new(0));
    let bouncer = PrivatePgBouncer::start(&server).unwrap();
    let fresh = async || {
        let name = format!("set{}", count.fetch_add(1, Ordering::Relaxed));
        let url = super::database(&server, &name).await;
        let through = url.replace(&server.port().to_string(), &bouncer.port().to_string());
        InDatabase(Address::parse(&through).unwrap())
    };
    exercise_store(fresh).await;
    exercise_outbox(fresh).await;
    Box::pin(exercise_books(fresh)).await;
    exercise_pools(fresh).await;
    exercise_audit(fresh).await;
    exercise_client_leases(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_are_moved_from_and_to_postgres_and_served_in_one_place_only() {
    let server = PrivatePostgres::start().unwrap();
    let open = async |name: &str, opening| {
        let url = format!("{}/{name}", server.url().strip_suffix("/postgres").unwrap());
        PostgresStore::open(&Address::parse(&url).unwrap(), Settings::default(), opening).await
    };
    for name in ["first", "second"] {
        super::database(&server, name).await;
    }
    let from = open("first", Opening::New).await.unwrap();
    exercise_move(&from, open("second", Opening::New).await.unwrap()).await;
    let left = open("first", Opening::Existing).await.err().unwrap().to_string();
    assert!(left.contains("was left for to"), "{left}");
    // A node that runs notices it with its next grant, and no operator can undo it by mistake.
    let refused = from.accept().await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    let place = bates_core::Place {
        series: "short".parse().unwrap(),
        scope: bates_core::ScopeKey::new([], None).unwrap(),
    };
    let want = bates_core::Want {
        place,
        count: 1,
        least: 1,
        start: 0,
        end: 10_000,
        scopes_max: 10,
        purpose: bates_core::Purpose::Lease,
        promise: None,
        held_from: None,
    };
    let refused = bates_core::Store::grant(&from, want).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    nothing_is_written_about_pools(&from).await;
    nothing_is_recorded(&from).await;
}

/// Who still has numbers of a store that was left in memory is told that they cannot be given.
async fn nothing_is_recorded(left: &PostgresStore) {
    let before = left.records(RecordFilter::default(), None, 10_000).await.unwrap();
    let record = Record { id: uuid::Uuid::now_v7(), ..before[0].clone() };
    let refused = left.record(vec![record]).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    assert_eq!(left.records(RecordFilter::default(), None, 10_000).await.unwrap(), before);
}

/// Of a store that was left: nobody would hear of it where they are now.
async fn nothing_is_written_about_pools(left: &PostgresStore) {
    let place = |scope| bates_core::Place {
        series: "carried".parse().unwrap(),
        scope: bates_core::ScopeKey::new([("scope", scope)], None).unwrap(),
    };
    let known = left.pool(place("pooled")).await.unwrap();
    let server = Server { run: "run".into(), replication: "replication".into() };
    let made = left.pool(place("new")).await.map(drop);
    let renewed = left.renew_pool(place("pooled"), Renewal { seen: 42, above: 0, server }).await.map(drop);
    let settled = left.settle_pool(place("pooled"), Settling { epoch: 42, ..Settling::default() }).await;
    for refused in [made, renewed, settled] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("was left for to"), "{refused}");
    }
    assert_eq!(left.pool(place("pooled")).await, Ok(known));
    assert_eq!(left.pools("carried".parse().unwrap(), None, 10).await.unwrap().len(), 2);
}

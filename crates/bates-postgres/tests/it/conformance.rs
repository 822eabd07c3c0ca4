//! The shared store passes the suite that every store must pass.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{AuditFilter, AuditRecord, PoolSettlement, RenewRequest, ServerIdentity};
use bates_postgres::{Address, OpenMode, PostgresStore, Settings};
use bates_testkit::{DataSet, PrivatePgBouncer, PrivatePostgres, conformance, exercise_move};

/// A database of its own in a server that the claims share which are tested just now.
struct InDatabase {
    address: Address,
    _servers: Arc<Servers>,
}

/// A PostgreSQL, and a PgBouncer in front of it.
struct Servers {
    // In a lock only because a process cannot be shared without one. Invariant: the PgBouncer ends first.
    _running: Mutex<(PrivatePgBouncer, PrivatePostgres)>,
    /// Of the PostgreSQL, without a database.
    url: String,
    port: u16,
    bouncer_port: u16,
    databases: AtomicU32,
}

impl Servers {
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Servers>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap();
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Self::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    fn start() -> Self {
        let postgres = PrivatePostgres::start().unwrap();
        let bouncer = PrivatePgBouncer::start(&postgres).unwrap();
        Self {
            url: postgres.url().strip_suffix("/postgres").unwrap().to_owned(),
            port: postgres.port(),
            bouncer_port: bouncer.port(),
            _running: Mutex::new((bouncer, postgres)),
            databases: AtomicU32::new(0),
        }
    }

    /// Makes a database, and answers with its URL.
    async fn database(&self) -> String {
        let name = format!("set{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let session = crate::connect(&format!("{}/postgres", self.url)).await;
        session.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        format!("{}/{name}", self.url)
    }
}

impl DataSet for InDatabase {
    type Store = PostgresStore;

    async fn open(&self) -> PostgresStore {
        // Nothing is claimed of how fast it is.
        let patient = Settings { patience: Duration::from_mins(1), ..Settings::default() };
        PostgresStore::open(&self.address, patient, OpenMode::New).await.unwrap()
    }
}

async fn fresh() -> InDatabase {
    let servers = Servers::shared();
    let address = Address::parse(&servers.database().await).unwrap();
    InDatabase { address, _servers: servers }
}

conformance!(super::fresh);

#[test]
fn random_histories_are_as_the_model_says() {
    bates_testkit::check_random_histories(fresh, 50);
}

/// Fault 10, in transaction mode: four connections to the server for all who ask, each transaction on another.
mod behind_pgbouncer {
    use bates_postgres::Address;
    use bates_testkit::conformance;

    use super::{InDatabase, Servers};

    async fn fresh() -> InDatabase {
        let servers = Servers::shared();
        let url = servers.database().await;
        let through = url.replace(&servers.port.to_string(), &servers.bouncer_port.to_string());
        let address = Address::parse(&through).unwrap();
        InDatabase { address, _servers: servers }
    }

    conformance!(super::fresh);
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
    let from = open("first", OpenMode::New).await.unwrap();
    exercise_move(&from, open("second", OpenMode::New).await.unwrap()).await;
    let left = open("first", OpenMode::Existing).await.err().unwrap().to_string();
    assert!(left.contains("was left for to"), "{left}");
    // A node that runs notices it with its next grant, and no operator can undo it by mistake.
    let refused = from.accept().await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    let scope_id = bates_core::ScopeId {
        series: "short".parse().unwrap(),
        scope: bates_core::ScopeKey::new([], None).unwrap(),
    };
    let want = bates_core::GrantRequest {
        scope_id,
        count: 1,
        count_needed: 1,
        start: 0,
        end: 10_000,
        scopes_max: 10,
        purpose: bates_core::GrantPurpose::Hold,
        promise: None,
        held_from: None,
    };
    let refused = from.grant(want).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    nothing_is_written_about_pools(&from).await;
    nothing_is_recorded(&from).await;
}

/// Who still has numbers of a store that was left in memory is told that they cannot be given.
async fn nothing_is_recorded(left: &PostgresStore) {
    let before = left.records(AuditFilter::default(), None, 10_000).await.unwrap();
    let record = AuditRecord { id: uuid::Uuid::now_v7(), ..before[0].clone() };
    let refused = left.record(vec![record]).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    assert_eq!(left.records(AuditFilter::default(), None, 10_000).await.unwrap(), before);
}

/// Of a store that was left: nobody would hear of it where they are now.
async fn nothing_is_written_about_pools(left: &PostgresStore) {
    let scope_id = |scope| bates_core::ScopeId {
        series: "carried".parse().unwrap(),
        scope: bates_core::ScopeKey::new([("scope", scope)], None).unwrap(),
    };
    let known = left.pool(scope_id("pooled")).await.unwrap();
    let server = ServerIdentity { run: "run".into(), replication: "replication".into() };
    let made = left.pool(scope_id("new")).await.map(drop);
    let renewed =
        left.renew_pool(scope_id("pooled"), RenewRequest { expected_epoch: 42, server }).await.map(drop);
    let settled =
        left.settle_pool(scope_id("pooled"), PoolSettlement { epoch: 42, ..PoolSettlement::default() }).await;
    for refused in [made, renewed, settled] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("was left for to"), "{refused}");
    }
    assert_eq!(left.pool(scope_id("pooled")).await, Ok(known));
    assert_eq!(left.pools("carried".parse().unwrap(), None, 10).await.unwrap().len(), 2);
}

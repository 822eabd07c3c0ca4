//! The shared store passes the suite that every store must pass.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{AuditFilter, AuditRecord, PoolSettlement, RenewRequest, ServerIdentity};
use bates_postgres::{Address, OpenMode, PostgresStore, Settings};
use bates_testkit::{DataSet, PrivatePgBouncer, PrivatePostgres, conformance, exercise_move};

/// A new database in a server that all running tests share.
struct InDatabase {
    address: Address,
    _servers: Arc<Servers>,
}

/// A PostgreSQL, and a PgBouncer in front of it.
struct Servers {
    // The lock only makes the processes shareable. Invariant: PgBouncer is dropped first.
    _running: Mutex<(PrivatePgBouncer, PrivatePostgres)>,
    /// URL of PostgreSQL, without a database.
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

    /// Creates a database, and returns its URL.
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
        // The suite makes no claim about speed.
        let settings = Settings { timeout: Duration::from_mins(1), ..Settings::default() };
        PostgresStore::open(&self.address, settings, OpenMode::New).await.unwrap()
    }
}

async fn fresh() -> InDatabase {
    let servers = Servers::shared();
    let address = Address::parse(&servers.database().await).unwrap();
    InDatabase { address, _servers: servers }
}

conformance!(super::fresh);

#[test]
fn random_histories_match_the_model() {
    bates_testkit::check_random_histories(fresh, 50);
}

/// Fault 10: PgBouncer in transaction mode shares four server connections among all clients, so each
/// transaction of a client may run on another one.
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
async fn a_store_moves_between_databases_and_serves_in_only_one() {
    let server = PrivatePostgres::start().unwrap();
    let open = async |name: &str, mode| {
        let url = format!("{}/{name}", server.url().strip_suffix("/postgres").unwrap());
        PostgresStore::open(&Address::parse(&url).unwrap(), Settings::default(), mode).await
    };
    for name in ["first", "second"] {
        super::database(&server, name).await;
    }
    let from = open("first", OpenMode::New).await.unwrap();
    exercise_move(&from, open("second", OpenMode::New).await.unwrap()).await;
    let left = open("first", OpenMode::Existing).await.err().unwrap().to_string();
    assert!(left.contains("was left for to"), "{left}");
    // A running node notices the move with its next grant, and an operator cannot undo it by mistake.
    let refused = from.accept(None).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    let scope_id = bates_core::ScopeId {
        series: "short".parse().unwrap(),
        scope: bates_core::ScopeKey::new([], None).unwrap(),
    };
    let request = bates_core::GrantRequest {
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
    let refused = from.grant(request).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    refuses_pool_writes(&from).await;
    refuses_audit_records(&from).await;
}

/// A node that still holds numbers of the left store cannot record them, and so cannot issue them.
async fn refuses_audit_records(left: &PostgresStore) {
    let before = left.records(AuditFilter::default(), None, 10_000).await.unwrap();
    let record = AuditRecord { id: uuid::Uuid::now_v7(), ..before[0].clone() };
    let refused = left.record(vec![record]).await.unwrap_err().to_string();
    assert!(refused.contains("was left for to"), "{refused}");
    assert_eq!(left.records(AuditFilter::default(), None, 10_000).await.unwrap(), before);
}

/// A write about a pool would be lost, because the pool has moved with the store.
async fn refuses_pool_writes(left: &PostgresStore) {
    let scope_id = |scope| bates_core::ScopeId {
        series: "adopted".parse().unwrap(),
        scope: bates_core::ScopeKey::new([("scope", scope)], None).unwrap(),
    };
    let known = left.pool(scope_id("pooled"), None).await.unwrap();
    let server = ServerIdentity { run: "run".into(), replication: "replication".into() };
    let created = left.pool(scope_id("new"), None).await.map(drop);
    let renewed =
        left.renew_pool(scope_id("pooled"), RenewRequest { expected_epoch: 42, server }).await.map(drop);
    let settled =
        left.settle_pool(scope_id("pooled"), PoolSettlement { epoch: 42, ..PoolSettlement::default() }).await;
    for refused in [created, renewed, settled] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("was left for to"), "{refused}");
    }
    assert_eq!(left.pool(scope_id("pooled"), None).await, Ok(known));
    assert_eq!(left.pools("adopted".parse().unwrap(), None, 10).await.unwrap().len(), 2);
}

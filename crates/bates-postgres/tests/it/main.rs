//! Tests of the shared store, on a real PostgreSQL.
#![allow(clippy::unwrap_used)]

mod claims;
mod conformance;
mod documents;
mod exhaustion;
mod keys;
mod moving;
mod notices;
mod opening;
mod pools;
mod proxy;
mod recall;
mod restored;
mod tls;
mod unknown_commits;

use bates_core::store::prelude::*;
use bates_core::{Definition, GrantPurpose, GrantRequest, ScopeId, ScopeKey};
use bates_postgres::{Address, OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;
use tokio_postgres::{Client, NoTls};

/// Connects without Bates.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Creates a database in a server, and returns its URL.
pub(crate) async fn database(server: &PrivatePostgres, name: &str) -> String {
    connect(&server.url()).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    format!("{}/{name}", server.url().strip_suffix("/postgres").unwrap())
}

pub(crate) async fn open_store(
    url: &str,
    settings: Settings,
    mode: OpenMode,
) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(&Address::parse(url).unwrap(), settings, mode).await
}

pub(crate) fn scope_id(scope: &str) -> ScopeId {
    let scope = ScopeKey::new([("scope", scope)], None).unwrap();
    ScopeId { series: "document".parse().unwrap(), scope }
}

pub(crate) fn request(scope: &str, count: u64, purpose: GrantPurpose) -> GrantRequest {
    GrantRequest {
        scope_id: scope_id(scope),
        count,
        count_needed: count,
        start: 1,
        end: 1_000_000,
        scopes_max: 1_000,
        purpose,
        promise: None,
        held_from: None,
    }
}

/// Pins the series of [`request`].
pub(crate) async fn pin_series(store: &PostgresStore) {
    let definition = Definition {
        series: "document".parse().unwrap(),
        template: "{scope}-{seq}".into(),
        parameters: "scope".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    };
    store.pin(definition, None).await.unwrap();
}

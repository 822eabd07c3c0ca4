//! What the shared store promises, on a real PostgreSQL.
#![allow(clippy::unwrap_used)]

mod conformance;

use bates_testkit::PrivatePostgres;
use tokio_postgres::{Client, NoTls};

/// A connection that knows nothing of Bates.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A new database in a server, and its address.
pub(crate) async fn database(server: &PrivatePostgres, name: &str) -> String {
    connect(&server.url()).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    format!("{}/{name}", server.url().strip_suffix("/postgres").unwrap())
}

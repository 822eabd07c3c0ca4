//! A PostgreSQL table: a row for each document. Must never create or change a table, nor keep state in a session.

mod rows;
mod table;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bates_connect::{Address, AddressError, client_config, root_certificates};
use bates_core::{
    DeliverEachFuture, DeliverFuture, Delivery, DeliveryError, DeliveryOutcomes, Sink, deliver_through_each,
};
use deadpool_postgres::{Object, Pool};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) use self::rows::reason;
use self::rows::{Failed, Insert};
use self::table::Table;
use crate::description::{SinkError, check_timeout, timeout_ms};
use crate::secret::{self, Secret};

const URL: &str = "postgres.url";

/// Rows of one statement; far larger arrays cost more than the saved round trips.
const BATCH_MAX: usize = 1_000;
/// Few, because a database allows few.
const CONNECTIONS: usize = 4;
/// Added to the timeout, so that the server gives up first.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresDescription {
    /// `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`.
    pub url: Secret,
    /// A file with the password instead.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// With or without its schema.
    pub table: String,
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
}

pub(crate) fn open(description: &PostgresDescription) -> Result<impl Sink, SinkError> {
    let PostgresDescription { url, password_file, table, timeout_ms } = description;
    let mut address = parse(url, URL)?;
    if password_file.is_some() && address.has_password() {
        return Err(SinkError::new("postgres.password_file", "the url already holds a password: remove one"));
    }
    read_password(&mut address, password_file.as_deref(), URL, "postgres.password_file")?;
    let table = Table::parse(table).map_err(|problem| SinkError::new("postgres.table", problem))?;
    check_timeout("postgres.timeout_ms", *timeout_ms)?;
    let pool = address.pool(connector(&address, URL)?, CONNECTIONS);
    let pool = pool.map_err(|error| SinkError::new(URL, error.to_string()))?;
    let (insert, timeout) = (Insert::into(table, *timeout_ms), Duration::from_millis(*timeout_ms));
    Ok(Postgres { pool, address, insert, timeout })
}

pub(crate) fn parse(url: &Secret, field: &'static str) -> Result<Address, SinkError> {
    Address::parse(url.reveal()).map_err(|AddressError(problem)| SinkError::new(field, problem))
}

pub(crate) fn read_password(
    address: &mut Address,
    file: Option<&Path>,
    field: &'static str,
    file_field: &'static str,
) -> Result<(), SinkError> {
    if let Some(password) = secret::read_secret(None, file, field, file_field)? {
        address.config.password(password.reveal());
    }
    Ok(())
}

/// Missing root certificates fail the first connection, not this call: addresses that need no TLS work without them.
pub(crate) fn connector(address: &Address, field: &'static str) -> Result<MakeRustlsConnect, SinkError> {
    let config = root_certificates(&address.trust).and_then(client_config);
    config.map(MakeRustlsConnect::new).map_err(|problem| SinkError::new(field, problem))
}

struct Postgres {
    pool: Pool,
    address: Address,
    insert: Insert,
    timeout: Duration,
}

impl Postgres {
    /// Halves a batch that fails because of one document, until every other document is inserted.
    async fn insert_each(&self, deliveries: &[Delivery], outcomes: &DeliveryOutcomes) {
        let report = |part: Range<usize>, outcome: Result<(), DeliveryError>| {
            part.for_each(|at| outcomes.report(at, outcome.clone()));
        };
        let all = 0..deliveries.len();
        let mut left = vec![all];
        while let Some(part) = left.pop().filter(|part| !part.is_empty()) {
            match self.attempt(&deliveries[part.clone()]).await {
                Ok(()) => report(part, Ok(())),
                Err(Failed::Document(_)) if part.len() > 1 => {
                    let middle = part.start + part.len() / 2;
                    left.extend([middle..part.end, part.start..middle]);
                }
                Err(Failed::Document(reason)) => report(part, Err(DeliveryError::Refused(reason))),
                // The other parts are not tried: each would wait for its own timeout.
                Err(Failed::Sink(reason)) => {
                    let unavailable = Err(DeliveryError::Unavailable(reason));
                    left.drain(..).chain([part]).for_each(|part| report(part, unavailable.clone()));
                }
                Err(Failed::Commit(reason)) => {
                    report(part, Err(DeliveryError::Unanswered(reason.clone())));
                    let unavailable = Err(DeliveryError::Unavailable(reason));
                    left.drain(..).for_each(|part| report(part, unavailable.clone()));
                }
            }
        }
    }

    async fn attempt(&self, deliveries: &[Delivery]) -> Result<(), Failed> {
        let late = "it did not answer in time";
        let deadline = Instant::now() + self.timeout + GRACE;
        let client = timeout_at(deadline, self.pool.get()).await.map_err(|_| Failed::Sink(late.into()))?;
        let mut client = client.map_err(|error| Failed::Sink(reason(&error)))?;
        match timeout_at(deadline, self.insert.run(&mut client, deliveries)).await {
            // The connection may still get the late answer.
            Err(_) => {
                drop(Object::take(client));
                Err(Failed::Commit(late.into()))
            }
            Ok(inserted) => inserted,
        }
    }
}

impl Sink for Postgres {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        deliver_through_each(self, deliveries)
    }

    fn deliver_each<'a>(
        &'a self,
        deliveries: &'a [Delivery],
        outcomes: &'a DeliveryOutcomes,
    ) -> DeliverEachFuture<'a> {
        Box::pin(self.insert_each(deliveries, outcomes))
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn describe(&self) -> String {
        format!("table {} in {}", self.insert.table, self.address)
    }
}

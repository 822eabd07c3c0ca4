//! The pool of connections, and the settings that a server needs before Bates trusts its commits.

use std::time::Duration;

use bates_connect::{Address, client_config, root_certificates};
use deadpool_postgres::Pool;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Failure, OpenError};
use crate::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Max connections, and so max batches under way. A few are enough: waiting calls share a commit.
    pub connections: usize,
    /// How long a call is retried while the database is away, and how long a statement waits for a lock. A node that sleeps
    /// in a transaction blocks others for half of it.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { connections: 8, timeout: Duration::from_secs(5) }
    }
}

/// A connection that does not answer can be replaced: nothing is committed before the first statement is answered.
pub(crate) fn pool(address: &Address, settings: Settings) -> Result<Pool, OpenError> {
    let pool = address.pool(connector(address)?, settings.connections.max(1));
    pool.map_err(|error| Failure::Transient(error.to_string().into()).into_open_error(address))
}

pub(crate) fn connector(address: &Address) -> Result<MakeRustlsConnect, OpenError> {
    let roots = root_certificates(&address.trust).map_err(OpenError::Tls)?;
    if let Some(roots) = &roots
        && roots.is_empty()
    {
        return Err(OpenError::Tls(
            "the system has no root certificates: name a file in sslrootcert, or another sslmode".into(),
        ));
    }
    Ok(MakeRustlsConnect::new(client_config(roots).map_err(OpenError::Tls)?))
}

/// Refuses a server that could lose a commit after it answered.
pub(crate) async fn check_server(session: &Session) -> Result<(), Failure> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'), \
                 current_setting('full_page_writes')";
    let rows = session.query(sql, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    if row.get(0) {
        return Err(Failure::Refused(OpenError::Standby));
    }
    let [synchronous_commit, fsync, full_page_writes]: [&str; 3] = [row.get(1), row.get(2), row.get(3)];
    if synchronous_commit == "off" {
        let danger = "a crash could lose commits, and their numbers would be issued again";
        let value = synchronous_commit.into();
        return Err(Failure::Refused(OpenError::Unsafe { setting: "synchronous_commit", value, danger }));
    }
    check_disk(fsync, full_page_writes).map_err(Failure::Refused)
}

/// Refuses settings with which a power cut loses or corrupts data. They apply to the whole server.
pub(crate) fn check_disk(fsync: &str, full_page_writes: &str) -> Result<(), OpenError> {
    let refuse =
        |setting, value: &str, danger| Err(OpenError::Unsafe { setting, value: value.into(), danger });
    match (fsync, full_page_writes) {
        ("on", "on") => Ok(()),
        ("on", value) => {
            refuse("full_page_writes", value, "a power cut could mix an old and a new version of a page")
        }
        (value, _) => {
            refuse("fsync", value, "a power cut could lose commits, and their numbers would be issued again")
        }
    }
}

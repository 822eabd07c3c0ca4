//! The pool of connections, and the settings that a server must have before a number depends on it.

use std::time::Duration;

use bates_connect::{Address, client_config, root_certificates};
use deadpool_postgres::Pool;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Failed, OpenError};
use crate::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Connections at the most, and so batches under way. A few are enough: calls that wait share a commit.
    pub connections: usize,
    /// How long a call is tried again while the database is away; then it fails. Also how long a lock is waited
    /// for; a node that sleeps in a transaction holds others up for half as long.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { connections: 8, patience: Duration::from_secs(5) }
    }
}

/// A connection that does not answer is replaced: the first statement is sent before anything is committed.
pub(crate) fn pool(address: &Address, settings: Settings) -> Result<Pool, OpenError> {
    let pool = address.pool(connector(address)?, settings.connections.max(1));
    pool.map_err(|error| Failed::Passing(error.to_string().into()).into_open_error(address))
}

pub(crate) fn connector(address: &Address) -> Result<MakeRustlsConnect, OpenError> {
    let roots = root_certificates(&address.trust).map_err(OpenError::Tls)?;
    if let Some(roots) = &roots
        && roots.is_empty()
    {
        return Err(OpenError::Tls("the system has no root certificates; name a file in sslrootcert".into()));
    }
    Ok(MakeRustlsConnect::new(client_config(roots).map_err(OpenError::Tls)?))
}

/// Refuses a server that could take back what it said was committed.
pub(crate) async fn check_server(session: &Session) -> Result<(), Failed> {
    let asked = "SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'), \
                 current_setting('full_page_writes')";
    let rows = session.query(asked, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    if row.get(0) {
        return Err(Failed::Refused(OpenError::Standby));
    }
    let [synchronous_commit, fsync, full_page_writes]: [&str; 3] = [row.get(1), row.get(2), row.get(3)];
    if synchronous_commit == "off" {
        let danger = "a crash takes commits back, and their numbers would come again";
        let value = synchronous_commit.into();
        return Err(Failed::Refused(OpenError::Unsafe { setting: "synchronous_commit", value, danger }));
    }
    check_disk(fsync, full_page_writes).map_err(Failed::Refused)
}

/// Refuses settings with which a power cut loses or mangles what is on disk. They belong to the server as a whole.
pub(crate) fn check_disk(fsync: &str, full_page_writes: &str) -> Result<(), OpenError> {
    let refuse =
        |setting, value: &str, danger| Err(OpenError::Unsafe { setting, value: value.into(), danger });
    match (fsync, full_page_writes) {
        ("on", "on") => Ok(()),
        ("on", value) => refuse(
            "full_page_writes",
            value,
            "a power cut may leave half of an old page and half of a new one",
        ),
        (value, _) => {
            refuse("fsync", value, "a power cut takes commits back, and their numbers would come again")
        }
    }
}

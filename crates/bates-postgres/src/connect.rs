//! The pool of connections, and what a server must be like before a number depends on it.

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};

use crate::address::Address;
use crate::error::{Failed, OpenError};
use crate::session::Session;
use crate::settings::Settings;
use crate::tls;

/// A bounded pool. Connections are not tried out before they are used: the first words of every piece of work are
/// sent before anything is committed, and a connection that does not answer them is replaced.
pub(crate) fn pool(address: &Address, settings: Settings) -> Result<Pool, OpenError> {
    let tls = tls::connector(&address.trust)?;
    let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(address.config.clone(), tls, config);
    let pool = Pool::builder(manager).max_size(settings.connections.max(1)).build();
    pool.map_err(|error| Failed::Passing(error.to_string().into()).into_open_error(address))
}

/// Refuses a server that could take back what it said was committed.
pub(crate) async fn check_server(session: &Session) -> Result<(), Failed> {
    let asked = "SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'), \
                 current_setting('full_page_writes')";
    let rows = session.query_typed(asked, &[]).await?;
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

//! The store that a configuration names, opened for a command, and the machine on it.

use std::mem::take;
use std::sync::Arc;

use bates_core::{Machine, Store, SystemRuntime};
use bates_postgres::{Opening as DatabaseOpening, PostgresStore};
use bates_server::series;
use bates_sqlite::{Opening, SqliteStore};

use crate::config::{Config, StoreAt};
use crate::serve::know_pools;

pub(crate) enum OpenStore {
    Folder(SqliteStore),
    Postgres(PostgresStore),
}

impl StoreAt {
    /// Opens it. A database is never made a store by its first use: that takes [`Opening::New`].
    pub(crate) async fn open(&self, opening: Opening) -> anyhow::Result<OpenStore> {
        let (address, settings) = match self {
            Self::Folder(path) => return Ok(OpenStore::Folder(SqliteStore::open(path, opening)?)),
            Self::Postgres(address, settings) => (address, *settings),
        };
        let opening = match opening {
            Opening::First | Opening::Existing => DatabaseOpening::Existing,
            Opening::New => DatabaseOpening::New,
            Opening::Stopped => DatabaseOpening::Stopped,
        };
        Ok(OpenStore::Postgres(PostgresStore::open(address, settings, opening).await?))
    }
}

/// Opens the series of the configuration, which leave it, those that were created at run time, and the pools.
pub(crate) async fn machine<S: Store>(store: S, config: &mut Config) -> anyhow::Result<Arc<Machine<S>>> {
    let machine = Machine::open(Arc::new(store), take(&mut config.series), Arc::new(SystemRuntime)).await?;
    machine.restore(series::read_spec).await?;
    know_pools(&machine, &config.pools)?;
    Ok(Arc::new(machine))
}

//! The store that a configuration names, opened for a command, and the machine on it.

use std::mem::take;
use std::sync::Arc;

use bates_core::{Machine, Store, SystemRuntime};
use bates_postgres::{Opening as DatabaseOpening, PostgresStore};
use bates_server::series;
use bates_sqlite::{Opening, SqliteStore};

use crate::config::{Config, StoreAt};
use crate::serve::know_pools;

/// The store that a command wants. A database is never made a store by its first use: that takes [`Opening::New`].
pub(crate) struct StoreRequest<'c> {
    pub(crate) at: &'c StoreAt,
    pub(crate) opening: Opening,
}

/// A store that is open.
pub(crate) enum OpenStore {
    Folder(SqliteStore),
    Postgres(PostgresStore),
}

impl StoreRequest<'_> {
    pub(crate) async fn open(self) -> anyhow::Result<OpenStore> {
        let (address, settings) = match self.at {
            StoreAt::Folder(path) => return Ok(OpenStore::Folder(SqliteStore::open(path, self.opening)?)),
            StoreAt::Postgres(address, settings) => (address, *settings),
        };
        let opening = match self.opening {
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

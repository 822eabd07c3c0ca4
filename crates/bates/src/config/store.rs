//! Where cursors are kept: a folder, or a PostgreSQL that nodes share; and where its password comes from.
//! Must never show a password, nor an address that may hold one.

use std::fmt;
use std::mem::take;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, Store, SystemRuntime};
use bates_postgres::{Address, OpenError, PostgresStore, Settings};
use bates_sqlite::{Opening, SqliteStore};

use super::{Config, reader::Reader};
use crate::serve::know_pools;

#[derive(Clone, Debug)]
pub(crate) enum StoreAt {
    Folder(PathBuf),
    Postgres(Box<Address>, Settings),
}

pub(crate) enum OpenStore {
    Folder(SqliteStore),
    Postgres(PostgresStore),
}

impl StoreAt {
    /// Only [`Opening::New`] makes a database a store.
    pub(crate) async fn open(&self, opening: Opening) -> anyhow::Result<OpenStore> {
        let (address, settings) = match self {
            Self::Folder(path) => return Ok(OpenStore::Folder(SqliteStore::open(path, opening)?)),
            Self::Postgres(address, settings) => (address, *settings),
        };
        let opening = match opening {
            Opening::First | Opening::Existing => bates_postgres::Opening::Existing,
            Opening::New => bates_postgres::Opening::New,
            Opening::Stopped => bates_postgres::Opening::Stopped,
        };
        Ok(OpenStore::Postgres(PostgresStore::open(address, settings, opening).await?))
    }

    pub(crate) fn address(&self) -> Option<&Address> {
        match self {
            Self::Folder(_) => None,
            Self::Postgres(address, _) => Some(address),
        }
    }
}

impl Config {
    /// Takes the series out of the configuration; adds those created at run time, and the pools.
    pub(crate) async fn machine<S: Store>(&mut self, store: S) -> anyhow::Result<Arc<Machine<S>>> {
        let machine = Machine::open(Arc::new(store), take(&mut self.series), Arc::new(SystemRuntime)).await?;
        machine.restore(bates_server::series::read_spec).await?;
        know_pools(&machine, &self.pools)?;
        Ok(Arc::new(machine))
    }
}

impl fmt::Display for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Postgres(address, _) => address.fmt(f),
        }
    }
}

/// A store named on the command line, with the password that `psql` would take.
impl FromStr for StoreAt {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Folder(PathBuf::from(path))),
            Some(("postgres" | "postgresql", _)) => {
                let address = Address::parse(given).map_err(|error| OpenError::from(error).to_string())?;
                Ok(Self::Postgres(Box::new(with_variable(address)), Settings::default()))
            }
            _ => Err("expected sqlite: and the path of a folder, or an address such as postgres://user@host/database".to_owned()),
        }
    }
}

fn with_variable(address: Address) -> Address {
    match std::env::var("PGPASSWORD") {
        Ok(password) if !address.has_password() => address.with_password(&password),
        _ => address,
    }
}

const SHARED_KEYS: [&str; 3] = ["store_password_file", "store_connections", "store_patience_ms"];

pub(super) fn store(reader: &mut Reader<'_, '_>) -> Option<StoreAt> {
    let given = reader.text("store").unwrap_or("sqlite:bates-data");
    match given.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            for key in SHARED_KEYS.iter().filter(|key| reader.tree.get(key).is_some()) {
                reader.wrong(key, format!("{key} is for a store on PostgreSQL"));
            }
            Some(StoreAt::Folder(PathBuf::from(path)))
        }
        Some(("postgres" | "postgresql", _)) => postgres(reader, given),
        _ => {
            // The value is not shown: it may hold a password.
            let problem = "store: expected sqlite: and the path of a folder, such as sqlite:/var/lib/bates, or an \
                           address such as postgres://user@host/database";
            reader.wrong("store", problem);
            None
        }
    }
}

fn postgres(reader: &mut Reader<'_, '_>, given: &str) -> Option<StoreAt> {
    let (before, default) = (reader.mistakes.count(), Settings::default());
    let connections = reader.number("store_connections", default.connections as u64, 1..=1_000);
    let patience = u64::try_from(default.patience.as_millis()).unwrap_or(u64::MAX);
    let patience = reader.number("store_patience_ms", patience, 100..=600_000);
    let settings = Settings {
        connections: usize::try_from(connections).unwrap_or(default.connections),
        patience: Duration::from_millis(patience),
    };
    let address = Address::parse(given).map_err(OpenError::from);
    let address = address.map_err(|error| reader.wrong("store", format!("store: {error}"))).ok()?;
    let address = with_password(reader, address);
    (reader.mistakes.count() == before).then(|| StoreAt::Postgres(Box::new(address), settings))
}

fn with_password(reader: &mut Reader<'_, '_>, address: Address) -> Address {
    const KEY: &str = "store_password_file";
    let Some(file) = reader.text(KEY) else { return with_variable(address) };
    if address.has_password() {
        reader.wrong(KEY, format!("store holds a password, and {KEY} is given too"));
        return address;
    }
    match reader.secret_in(file, KEY, "") {
        Some(password) => address.with_password(&password),
        None => address,
    }
}

//! Where the store is: a folder, or a PostgreSQL database that nodes share; and where its password comes from. Must
//! never show a password, nor an address that may hold one.

use std::fmt;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bates_core::{Machine, SeriesStore as _, Store, SystemRuntime};
use bates_postgres::{Address, OpenError, PostgresStore, Settings};
use bates_sqlite::{OpenMode, SqliteStore};
use uuid::Uuid;

use super::{Config, reader::Reader};
use crate::serve::open_pools;

#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    Folder(PathBuf),
    Postgres(Box<Address>, Settings),
}

pub(crate) enum OpenStore {
    Folder(SqliteStore),
    Postgres(PostgresStore),
}

impl OpenStore {
    pub(crate) fn identity(&self) -> Uuid {
        match self {
            Self::Folder(store) => store.identity(),
            Self::Postgres(store) => store.identity(),
        }
    }
}

impl Config {
    /// Refuses a store that is not the one of `store_id`.
    pub(crate) async fn open_store(&self, mode: OpenMode) -> anyhow::Result<OpenStore> {
        // A store that is known to exist is never made.
        let mode = match (mode, self.store_id) {
            (OpenMode::First | OpenMode::New, Some(_)) => OpenMode::Existing,
            (mode, _) => mode,
        };
        let opened = self.store.open(mode, self.mark_file.as_deref()).await?;
        let found = opened.identity();
        match self.store_id {
            Some(expected) if expected != found => bail!(
                "the store at {} has the id {found}, but store_id is {expected}: this is another store. Correct the \
                 address of the store, or store_id if the other store is meant",
                self.store
            ),
            _ => Ok(opened),
        }
    }
}

impl StoreLocation {
    async fn open(&self, mode: OpenMode, mark_file: Option<&Path>) -> anyhow::Result<OpenStore> {
        match self {
            Self::Folder(path) if mode == OpenMode::New && SqliteStore::is_in(path) => self.refuse_new(),
            Self::Folder(path) => Ok(OpenStore::Folder(SqliteStore::open_with_mark(path, mode, mark_file)?)),
            Self::Postgres(address, settings) => {
                if mode == OpenMode::New && !PostgresStore::migrate(address, *settings).await? {
                    return self.refuse_new();
                }
                let mode = match mode {
                    OpenMode::Stopped => bates_postgres::OpenMode::Stopped,
                    _ => bates_postgres::OpenMode::Existing,
                };
                Ok(OpenStore::Postgres(PostgresStore::open(address, *settings, mode).await?))
            }
        }
    }

    fn refuse_new<T>(&self) -> anyhow::Result<T> {
        bail!(
            "there is a store at {self} already: a new one would issue its numbers again. Start without --new"
        )
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
    pub(crate) async fn open_machine<S: Store>(&mut self, store: S) -> anyhow::Result<Arc<Machine<S>>> {
        self.open_machine_of(Arc::new(store)).await
    }

    /// As [`Self::open_machine`], of a store that the caller also uses by itself.
    pub(crate) async fn open_machine_of<S: Store>(
        &mut self,
        store: Arc<S>,
    ) -> anyhow::Result<Arc<Machine<S>>> {
        let machine = Machine::open(store, take(&mut self.series), Arc::new(SystemRuntime)).await?;
        for closed in machine.load_series(bates_server::series::parse_spec).await? {
            let hint = "it issues no numbers: retire one of the two with DELETE /v1/series/NAME";
            crate::output::print_note(&format!("{closed}; {hint}"));
        }
        machine.limit_scopes(self.scopes_in_memory_max);
        open_pools(&machine, self)?;
        Ok(Arc::new(machine))
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Postgres(address, _) => address.fmt(f),
        }
    }
}

/// A store named on the command line, with the password that `psql` would take.
impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Folder(PathBuf::from(path))),
            Some(("postgres" | "postgresql", _)) => {
                let address = Address::parse(given).map_err(|error| OpenError::from(error).to_string())?;
                Ok(Self::Postgres(Box::new(with_password_variable(address)), Settings::default()))
            }
            _ => Err("expected sqlite:FOLDER or postgres://user@host/database".to_owned()),
        }
    }
}

fn with_password_variable(address: Address) -> Address {
    match std::env::var("PGPASSWORD") {
        Ok(password) if !address.has_password() => address.with_password(&password),
        _ => address,
    }
}

/// `bates init --store` writes it.
pub(super) fn read_store_id(reader: &mut Reader<'_, '_>) -> Option<Uuid> {
    const KEY: &str = "store_id";
    let id = reader.text(KEY)?.parse();
    id.map_err(|_| reader.add_mistake(KEY, "store_id must be a UUID, as `bates init --store` writes it")).ok()
}

const POSTGRES_KEYS: [&str; 3] = ["store_password_file", "store_connections", "store_timeout_ms"];

pub(super) fn read_store(reader: &mut Reader<'_, '_>) -> Option<StoreLocation> {
    let given = reader.text("store").unwrap_or("sqlite:bates-data");
    match given.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            for key in POSTGRES_KEYS.iter().filter(|key| reader.tree.get(key).is_some()) {
                reader.add_mistake(key, format!("{key} is only for a store on PostgreSQL"));
            }
            Some(StoreLocation::Folder(PathBuf::from(path)))
        }
        Some(("postgres" | "postgresql", _)) => read_postgres(reader, given),
        _ => {
            // The value is not shown: it may hold a password.
            reader.add_mistake("store", "store: expected sqlite:FOLDER or postgres://user@host/database");
            None
        }
    }
}

fn read_postgres(reader: &mut Reader<'_, '_>, given: &str) -> Option<StoreLocation> {
    let (before, default) = (reader.mistakes.count(), Settings::default());
    let connections = reader.number("store_connections", default.connections as u64, 1..=1_000);
    let timeout = u64::try_from(default.timeout.as_millis()).unwrap_or(u64::MAX);
    let timeout = reader.number("store_timeout_ms", timeout, 100..=600_000);
    let settings = Settings {
        connections: usize::try_from(connections).unwrap_or(default.connections),
        timeout: Duration::from_millis(timeout),
    };
    let address = Address::parse(given).map_err(OpenError::from);
    let address = address.map_err(|error| reader.add_mistake("store", format!("store: {error}"))).ok()?;
    let address = with_configured_password(reader, address);
    (reader.mistakes.count() == before).then(|| StoreLocation::Postgres(Box::new(address), settings))
}

fn with_configured_password(reader: &mut Reader<'_, '_>, address: Address) -> Address {
    const KEY: &str = "store_password_file";
    let Some(file) = reader.text(KEY) else { return with_password_variable(address) };
    if address.has_password() {
        reader.add_mistake(KEY, format!("store already holds a password: remove it, or remove {KEY}"));
        return address;
    }
    match reader.read_secret_file(file, KEY, "") {
        Some(password) => address.with_password(&password),
        None => address,
    }
}

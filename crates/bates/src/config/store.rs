//! Where cursors are kept: a folder of this machine, or a PostgreSQL that nodes share. Owns where the password comes
//! from. Must never show one, nor an address that may hold one.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bates_postgres::{Address, OpenError, Settings};

use super::reader::Reader;

#[derive(Clone, Debug)]
pub(crate) enum StoreAt {
    Folder(PathBuf),
    Postgres(Box<Address>, Settings),
}

impl StoreAt {
    pub(crate) fn address(&self) -> Option<&Address> {
        match self {
            Self::Folder(_) => None,
            Self::Postgres(address, _) => Some(address),
        }
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

/// How long a command waits for a busy database: longer than a server, because no caller waits behind it.
const COMMAND_PATIENCE: Duration = Duration::from_mins(1);

/// A store that is named on the command line, with the password that `psql` would take.
impl FromStr for StoreAt {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Folder(PathBuf::from(path))),
            Some(("postgres" | "postgresql", _)) => {
                let address = Address::parse(given).map_err(|error| OpenError::from(error).to_string())?;
                let settings = Settings { patience: COMMAND_PATIENCE, ..Settings::default() };
                Ok(Self::Postgres(Box::new(with_variable(address)), settings))
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
            // What is not a path may hold a password.
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

/// The password of the address itself, of a file, or of the variable that `psql` reads.
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

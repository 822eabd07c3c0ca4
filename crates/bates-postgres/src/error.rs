//! Why a database could not be opened as a store, and whether an error of PostgreSQL is worth a retry.
//!
//! Must never show a password or the address that holds it.

use bates_connect::{Address, AddressError, Trust};
use bates_core::StoreError;
use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is not shown: it may hold a password.
    #[error("invalid store address, expected postgres://user@host/database: {0}")]
    Address(Box<str>),
    #[error("cannot set up TLS to the store: {0}")]
    Tls(Box<str>),
    #[error("the database has {setting} = {value}: {danger}. Set it to on")]
    Unsafe { setting: &'static str, value: Box<str>, danger: &'static str },
    #[error("the database is a read-only standby: connect to the primary")]
    Standby,
    #[error(
        "the database {0} holds no Bates store. If it held one before, restore it: a new store would issue the same \
         numbers again. If this is the first start, create one with `bates migrate`, or start with --new"
    )]
    NoStore(Box<str>),
    #[error(
        "the schema bates has version {found}, of an earlier Bates: stop all nodes of that version, then bring it up to \
         date to {needed} with `bates migrate`. Earlier versions refuse it from then on"
    )]
    OlderVersion { found: i32, needed: i32 },
    #[error("the table bates.store is empty, so numbers could be issued twice: restore the database")]
    Emptied,
    #[error(
        "the schema bates has version {found}, but this Bates needs {needed}: run the version of Bates that created the \
         store"
    )]
    OtherVersion { found: i32, needed: i32 },
    #[error(
        "cannot create version {needed} of the schema bates: {reason}. Run `bates migrate` as a role that may create \
         tables"
    )]
    Migrate { needed: i32, reason: Box<str> },
    #[error("{0}")]
    Stopped(Box<str>),
    #[error("cannot use the database {address}: {reason}")]
    Database { address: Box<str>, reason: Box<str> },
}

/// Why work on the database failed. Nothing was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A retry may succeed.
    Transient(Box<str>),
    Permanent(StoreError),
    /// The database must not be used.
    Refused(OpenError),
}

impl Failure {
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Transient(reason) => StoreError::Unavailable(reason),
            Self::Permanent(error) => error,
            Self::Refused(error @ OpenError::Stopped(_)) => StoreError::Poisoned(error.to_string().into()),
            Self::Refused(error) => StoreError::Unavailable(error.to_string().into()),
        }
    }

    pub(crate) fn into_open_error(self, address: &Address) -> OpenError {
        let reason = match self {
            Self::Transient(reason) | Self::Permanent(StoreError::Unavailable(reason)) => reason,
            Self::Permanent(error) => error.to_string().into(),
            Self::Refused(error) => return error,
        };
        let remedy = tls_remedy(address, &reason);
        OpenError::Database {
            address: address.to_string().into(),
            reason: format!("{reason}{remedy}").into(),
        }
    }
}

/// What to do if TLS failed. The default mode verifies servers of other machines.
fn tls_remedy(address: &Address, reason: &str) -> &'static str {
    let is_tls = ["TLS", "certificate"].iter().any(|word| reason.contains(word));
    match address.trust {
        Trust::System | Trust::File(_) if is_tls => {
            ". The certificate of the server must be valid for its host name (sslmode=verify-full, the default for other \
             machines): name its authority in sslrootcert, or add sslmode=disable to the address if the network is trusted"
        }
        _ => "",
    }
}

impl From<AddressError> for OpenError {
    fn from(AddressError(reason): AddressError) -> Self {
        Self::Address(reason.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Permanent(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let reason = describe(&error);
        match error.code() {
            Some(code) if !is_transient(code) => Self::Permanent(StoreError::Unavailable(reason)),
            _ => Self::Transient(reason),
        }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
            other => Self::Transient(other.to_string().into()),
        }
    }
}

/// The message of the server, or of the library if the server sent none.
pub(crate) fn describe(error: &Error) -> Box<str> {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(answer), _) => format!("{} ({})", answer.message(), answer.code().code()).into(),
        // The library only says `error connecting to server`; the source says why.
        (None, Some(source)) => format!("{error}: {source}").into(),
        (None, None) => error.to_string().into(),
    }
}

fn is_transient(code: &SqlState) -> bool {
    // 08: the connection; 40: a conflict or deadlock; 53: no disk, memory or connection left; 55: a lock was not
    // granted; 57: the server is stopping or starting; 58 and XX: an error of the system below it.
    const CLASSES: [&str; 7] = ["08", "40", "53", "55", "57", "58", "XX"];
    let is_read_only = *code == SqlState::READ_ONLY_SQL_TRANSACTION;
    let was_idle = *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT;
    is_read_only || was_idle || CLASSES.iter().any(|class| code.code().starts_with(class))
}

//! Why a database could not be opened as a store, and what an error of PostgreSQL means for numbers.
//!
//! Must never show a password or the address that holds it.

use bates_connect::{Address, AddressError};
use bates_core::StoreError;
use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is not shown: it may hold a password.
    #[error("the address of the store is none such as postgres://user@host/database: {0}")]
    Address(Box<str>),
    #[error("TLS to the store: {0}")]
    Tls(Box<str>),
    #[error("the database has {setting} = {value}: {danger}. Set it to on")]
    Unsafe { setting: &'static str, value: Box<str>, danger: &'static str },
    #[error("the database is a standby, which cannot be written: connect to the primary")]
    Standby,
    #[error(
        "the database {0} holds no Bates store. If it should, do not go on: numbers would begin again. If this is \
         the first start, make one with `bates migrate`, or start with --new"
    )]
    NoStore(Box<str>),
    #[error("the schema bates lacks its row of bates.store: it was emptied, and numbers could come twice")]
    Emptied,
    #[error(
        "the schema bates has version {found}, and this version of Bates needs {needed}: run the version of Bates that \
         created the store"
    )]
    OtherVersion { found: i32, needed: i32 },
    #[error(
        "the schema bates needs version {needed}: run `bates migrate` as a role that may create tables: {reason}"
    )]
    Migrate { needed: i32, reason: Box<str> },
    #[error("{0}")]
    Stopped(Box<str>),
    #[error("the database {address} cannot be used: {reason}")]
    Database { address: Box<str>, reason: Box<str> },
}

/// Nothing was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Another try may succeed.
    Passing(Box<str>),
    Lasting(StoreError),
    /// The database itself must not be used.
    Refused(OpenError),
}

impl Failed {
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Passing(reason) => StoreError::Unavailable(reason),
            Self::Lasting(error) => error,
            Self::Refused(error @ OpenError::Stopped(_)) => StoreError::Poisoned(error.to_string().into()),
            Self::Refused(error) => StoreError::Unavailable(error.to_string().into()),
        }
    }

    pub(crate) fn into_open_error(self, address: &Address) -> OpenError {
        let reason = match self {
            Self::Passing(reason) | Self::Lasting(StoreError::Unavailable(reason)) => reason,
            Self::Lasting(error) => error.to_string().into(),
            Self::Refused(error) => return error,
        };
        OpenError::Database { address: address.to_string().into(), reason }
    }
}

impl From<AddressError> for OpenError {
    fn from(AddressError(reason): AddressError) -> Self {
        Self::Address(reason.into())
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Lasting(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let reason = told(&error);
        match error.code() {
            Some(code) if !is_passing(code) => Self::Lasting(StoreError::Unavailable(reason)),
            _ => Self::Passing(reason),
        }
    }
}

impl From<PoolError> for Failed {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
            other => Self::Passing(other.to_string().into()),
        }
    }
}

/// What went wrong, in the words of the server where it has any.
pub(crate) fn told(error: &Error) -> Box<str> {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()).into(),
        // The words of the library are `error connecting to server`; why is behind them.
        (None, Some(source)) => format!("{error}: {source}").into(),
        (None, None) => error.to_string().into(),
    }
}

fn is_passing(code: &SqlState) -> bool {
    // 08: the connection; 40: a conflict or deadlock; 53: no room, no memory, no connection left; 55: a lock that
    // was not given; 57: the server is stopping or starting; 58 and XX: the system beneath it.
    const CLASSES: [&str; 7] = ["08", "40", "53", "55", "57", "58", "XX"];
    let is_read_only = *code == SqlState::READ_ONLY_SQL_TRANSACTION;
    let was_idle = *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT;
    is_read_only || was_idle || CLASSES.iter().any(|class| code.code().starts_with(class))
}

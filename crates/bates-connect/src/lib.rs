//! The address of a PostgreSQL database, and the certificates that are trusted, for the shared store and the sinks. Must
//! never show a password.

mod address;
mod tls;

pub use address::{Address, AddressError};
pub use tls::{Trust, client_config, root_certificates};

//! How adapters reach servers: the address of a PostgreSQL database, and what a server has to prove with TLS.
//!
//! The shared store and the sinks use it, which must not see each other. Must never show a password, and never issue or
//! deliver anything.

mod address;
mod tls;

pub use address::{Address, AddressError};
pub use tls::{Trust, client_config, root_certificates};

//! The address of a PostgreSQL database, and what a server has to prove with TLS, for the shared store and the sinks.
//! Must never show a password, and never issue or deliver anything.

mod address;
mod tls;

pub use address::{Address, AddressError};
pub use tls::{Trust, client_config, root_certificates};

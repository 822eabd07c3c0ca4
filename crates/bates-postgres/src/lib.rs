//! The shared store: cursors in PostgreSQL, moved in short transactions by any number of nodes.
//!
//! Owns the schema, the connections, and the handling of commits whose outcome is unknown. Must never take a session
//! advisory lock, keep state in a session, use a bare `nextval` (it is durable only once the transaction commits), or show
//! a password. Everything works behind PgBouncer in transaction mode; only `notice` listens in a session, if it can.

mod audit;
mod batch;
mod caller;
mod client_lease;
mod cluster;
mod connect;
mod cursor;
mod error;
mod gap;
mod holding;
mod id_pools;
mod lineage;
mod listed;
mod moving;
mod node;
mod notice;
mod open;
mod operation;
mod outbox;
mod parameter;
mod pool;
mod read;
mod recall;
mod retry;
mod schema;
mod session;
mod store;
mod write;

pub use bates_connect::Address;
pub use connect::Settings;
pub use error::OpenError;
pub use id_pools::IdPools;
pub use node::CRASHED_AFTER;
pub use open::OpenMode;
pub use store::PostgresStore;

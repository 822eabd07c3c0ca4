//! The embedded store: SQLite in one folder. One thread writes, and combines the waiting requests into one commit.
//!
//! Must never answer before a commit is on disk, nor continue after a write whose outcome is unknown.

mod audit;
pub mod backup;
mod batch;
mod caller;
mod checkpoint;
mod client_lease;
mod cursor;
mod error;
mod folder;
mod gap;
mod held;
mod known_scopes;
mod listed;
mod log;
mod mark_file;
mod moving;
mod new_scopes;
mod open;
mod operation;
mod outbox;
mod pin;
mod planted;
mod pool;
mod progress;
mod reserve;
mod schema;
mod scope;
mod series;
mod state_file;
mod store;
mod write;
mod writer;

pub use error::{Damage, OpenError};
pub use folder::OpenMode;
pub use store::SqliteStore;

//! Commands that ask a running server: `next`, `pop`, `peek`, `validate`, `series`, and lists.

pub(crate) mod audit;
pub(crate) mod gaps;
pub(crate) mod leases;
mod list;
pub(crate) mod numbers;
pub(crate) mod operations;
pub(crate) mod outbox;
pub(crate) mod series;
pub(crate) mod server;
pub(crate) mod tokens;
pub(crate) mod validate;
mod verify;

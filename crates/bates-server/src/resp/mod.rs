//! The Redis protocol: every Redis client is a Bates client.
//!
//! [`Reader`] and [`Reply`] only parse and write bytes: they know neither sockets nor commands. The rest turns commands
//! into calls of the machine: `listener` → `connection` → `command`, one file per command.

mod clients;
mod command;
mod connection;
mod error;
mod frame;
mod inline;
mod length;
mod limits;
mod listener;
mod reply;
mod session;
mod transaction;

pub use error::ProtocolError;
pub use frame::{Command, Progress, Reader};
pub use limits::Limits;
pub use listener::{Settings, serve};
pub use reply::{Protocol, Reply};

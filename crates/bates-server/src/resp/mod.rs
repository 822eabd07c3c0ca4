//! The Redis protocol on the wire: bytes into commands, answers into bytes. Pure: it reads from a slice and
//! appends to a `Vec`. Must never touch a socket, wait, or know what a command does.

mod error;
mod frame;
mod inline;
mod length;
mod limits;
mod reply;

pub use error::ProtocolError;
pub use frame::{Command, Progress, Reader};
pub use limits::Limits;
pub use reply::{Protocol, Reply};

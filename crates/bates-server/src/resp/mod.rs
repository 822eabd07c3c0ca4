//! The Redis protocol on the wire: bytes into commands. Pure: it reads from a slice. Must never touch a socket, wait, or know what a command does.

mod error;
mod frame;
mod inline;
mod length;
mod limits;

pub use error::ProtocolError;
pub use frame::{Command, Progress, Reader};
pub use limits::Limits;

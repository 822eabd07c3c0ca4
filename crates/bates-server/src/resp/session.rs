//! What a connection is between two commands.

use super::Protocol;

/// The state of a connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The version that `HELLO` asked for.
    pub(super) protocol: Protocol,
    /// The name that `CLIENT SETNAME` gave.
    pub(super) name: String,
    /// Room for the key of a scope, kept from one command to the next.
    pub(super) scope: String,
}

//! How much a client may send in one command. Memory must never grow with an announced length, only with arrived bytes.

use super::error::ProtocolError;

/// Limits of one command. If the server has a secret, a connection begins with [`Limits::UNAUTHENTICATED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments, including the name of the command.
    pub arg_count_max: usize,
    pub arg_bytes_max: usize,
    /// Bytes of a line before its line feed, for commands typed by hand.
    pub inline_bytes_max: usize,
    /// Bytes of one command on the wire, including lengths and line ends.
    pub command_bytes_max: usize,
    /// Only chooses the words of an error.
    pub is_authenticated: bool,
}

impl Limits {
    pub const AUTHENTICATED: Self = Self {
        // Redis allows 2^31. 65,536 keys of 10 bytes fill `command_bytes_max`, and their spans take 1 MiB.
        arg_count_max: 65_536,
        // Redis allows 512 MiB, for values. Bates stores none: the longest argument is a key.
        arg_bytes_max: 512 * 1024,
        // As Redis.
        inline_bytes_max: 64 * 1024,
        // The memory that a connection can fill: two of the longest arguments.
        command_bytes_max: 1024 * 1024 + 4096,
        is_authenticated: true,
    };

    /// Enough for `AUTH` and `HELLO`. The number and length of arguments are those of Redis.
    pub const UNAUTHENTICATED: Self = Self {
        arg_count_max: 10,
        arg_bytes_max: 16 * 1024,
        inline_bytes_max: 16 * 1024,
        // Ten arguments of the maximum length would be 160 KiB for each unauthenticated client.
        command_bytes_max: 64 * 1024,
        is_authenticated: false,
    };

    #[inline]
    pub(super) fn check_count(&self, count: usize) -> Result<(), ProtocolError> {
        let Self { arg_count_max: limit, is_authenticated, .. } = *self;
        if count > limit { Err(ProtocolError::TooManyArguments { limit, is_authenticated }) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn check_argument(&self, bytes: usize) -> Result<(), ProtocolError> {
        let Self { arg_bytes_max: limit, is_authenticated, .. } = *self;
        if bytes > limit { Err(ProtocolError::ArgumentTooLong { limit, is_authenticated }) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn check_command(&self, bytes: usize) -> Result<(), ProtocolError> {
        let limit = self.command_bytes_max;
        if bytes > limit { Err(ProtocolError::CommandTooLong { limit }) } else { Ok(()) }
    }
}

//! How much a client may send in one command. Owns the limits and their reasons. Must never be exceeded by
//! what is only announced: memory grows with the bytes that arrived, not with the lengths they name.

use super::error::ProtocolError;

/// Bounds of one command. A connection begins with [`Limits::UNAUTHENTICATED`] where a password is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most arguments, the command's name among them.
    pub arg_count_max: usize,
    pub arg_bytes_max: usize,
    /// The most bytes of a line before its line feed, for commands typed by hand.
    pub inline_bytes_max: usize,
    /// The most bytes of one command on the wire, lengths and line ends among them.
    pub command_bytes_max: usize,
    /// The error about a limit says whose it is.
    pub is_authenticated: bool,
}

impl Limits {
    pub const AUTHENTICATED: Self = Self {
        // Redis allows 2^31. 65,536 keys of 10 bytes fill `command_bytes_max`, and their spans take 1 MiB.
        arg_count_max: 65_536,
        // Redis allows 512 MiB, for values. We store none; the longest argument is a key or a document.
        arg_bytes_max: 512 * 1024,
        // As Redis.
        inline_bytes_max: 64 * 1024,
        // What a connection can make us hold: two of the longest arguments.
        command_bytes_max: 1024 * 1024 + 4096,
        is_authenticated: true,
    };

    /// `AUTH` and `HELLO` fit, and little else. The number and the length of arguments are those of Redis.
    pub const UNAUTHENTICATED: Self = Self {
        arg_count_max: 10,
        arg_bytes_max: 16 * 1024,
        inline_bytes_max: 16 * 1024,
        // Ten arguments of the greatest length would be 160 KiB, for each stranger who connects.
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

//! Why bytes are not the Redis protocol. Owns the sentences, which begin as Redis' own do, because people
//! search for those. Must never hold what a client sent beyond one escaped byte: errors end up in logs.

use std::ascii::escape_default;

/// Bytes that no command can be read from. What follows them cannot be trusted either, so the connection
/// is to be closed: after the answer `-ERR` and this sentence, or without one, see [`Self::is_answered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// `*` without a plain decimal number and CRLF behind it.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// `$` without a plain decimal number from 0 and CRLF behind it.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// More arguments than a command may have.
    #[error("Protocol error: {} multibulk length: the limit is {limit}", blame(*.is_authenticated))]
    TooManyArguments {
        /// The most there may be.
        limit: usize,
        /// Whether the limit is that of a client that has authenticated itself.
        is_authenticated: bool,
    },
    /// An argument longer than one may be.
    #[error("Protocol error: {} bulk length: the limit is {limit}", blame(*.is_authenticated))]
    ArgumentTooLong {
        /// The most bytes it may have.
        limit: usize,
        /// Whether the limit is that of a client that has authenticated itself.
        is_authenticated: bool,
    },
    /// A command whose arguments are short enough, but not together.
    #[error("Protocol error: too big request: the limit is {limit} bytes")]
    CommandTooLong {
        /// The most bytes a command may have on the wire.
        limit: usize,
    },
    /// Something other than a bulk string inside an array; a nested array, for one.
    #[error("Protocol error: expected '$', got '{}'", escape_default(*.found))]
    ExpectedBulk {
        /// The byte that stands there.
        found: u8,
    },
    /// An argument that is not followed by CRLF: its length was wrong.
    #[error("Protocol error: expected CRLF behind an argument")]
    ExpectedCrlf,
    /// A line that is too long, or does not end.
    #[error("Protocol error: too big inline request: the limit is {limit} bytes")]
    InlineTooLong {
        /// The most bytes there may be before the line feed.
        limit: usize,
    },
    /// A quote that is not closed, or text right behind a closed one.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A zero byte in a line: this is no text. A TLS handshake looks like this.
    #[error("Protocol error: zero byte in inline request; is this TLS?")]
    ZeroByte,
    /// HTTP: a browser may have been talked into sending commands hidden in a request.
    #[error("Protocol error: this is HTTP, sent to the port of the Redis protocol")]
    Http,
}

impl ProtocolError {
    /// Whether the client is told before the connection is closed. HTTP is not: whatever is answered could
    /// be read by the page that made a browser send it.
    pub fn is_answered(self) -> bool {
        self != Self::Http
    }
}

/// Redis says `unauthenticated` where authentication would have helped.
fn blame(is_authenticated: bool) -> &'static str {
    if is_authenticated { "invalid" } else { "unauthenticated" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_as_those_of_redis() {
        let limit = |is_authenticated| ProtocolError::ArgumentTooLong { limit: 5, is_authenticated };
        let cases = [
            (ProtocolError::InvalidBulkLength, "Protocol error: invalid bulk length"),
            (limit(true), "Protocol error: invalid bulk length: the limit is 5"),
            (limit(false), "Protocol error: unauthenticated bulk length: the limit is 5"),
            (ProtocolError::ExpectedBulk { found: b'*' }, "Protocol error: expected '$', got '*'"),
            (ProtocolError::ExpectedBulk { found: b'\r' }, "Protocol error: expected '$', got '\\r'"),
        ];
        for (error, sentence) in cases {
            assert_eq!(error.to_string(), sentence);
        }
    }
}

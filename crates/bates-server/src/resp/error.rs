//! Protocol errors. The messages begin like those of Redis, because people search for these. Must never hold more than
//! one escaped byte of a client's text: errors end up in logs.

use std::ascii::escape_default;

/// The server closes the connection, after `-ERR` and this message if [`Self::is_answered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    #[error("Protocol error: {} multibulk length: the limit is {limit}", limit_word(*.is_authenticated))]
    TooManyArguments { limit: usize, is_authenticated: bool },
    #[error("Protocol error: {} bulk length: the limit is {limit}", limit_word(*.is_authenticated))]
    ArgumentTooLong { limit: usize, is_authenticated: bool },
    #[error("Protocol error: too big request: the limit is {limit} bytes")]
    CommandTooLong { limit: usize },
    #[error("Protocol error: expected '$', got '{}'", escape_default(*.found))]
    ExpectedBulk { found: u8 },
    #[error("Protocol error: expected CRLF after an argument")]
    ExpectedCrlf,
    #[error("Protocol error: too big inline request: the limit is {limit} bytes")]
    InlineTooLong { limit: usize },
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A TLS handshake looks like this.
    #[error("Protocol error: zero byte in inline request; is this TLS?")]
    ZeroByte,
    /// A web page may have made a browser send commands hidden in a request.
    #[error("Protocol error: this is HTTP, sent to the port of the Redis protocol")]
    Http,
}

impl ProtocolError {
    /// HTTP is not answered: the web page that caused the request could read the answer.
    pub fn is_answered(self) -> bool {
        self != Self::Http
    }
}

/// Redis says `unauthenticated` where authentication would have helped.
fn limit_word(is_authenticated: bool) -> &'static str {
    if is_authenticated { "invalid" } else { "unauthenticated" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_begin_like_those_of_redis() {
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

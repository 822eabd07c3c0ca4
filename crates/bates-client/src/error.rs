//! Errors of a [`Client`](crate::Client) and of a [`Pool`](crate::Pool).

use bates_api::{PathError, Problem};
use thiserror::Error;

const EXHAUSTED: &str = "exhausted";

/// Why a call failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is wrong. Nothing was sent.
    #[error("invalid {what}: {reason}")]
    #[non_exhaustive]
    BadArgument {
        /// The argument.
        what: &'static str,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// The scope has no more numbers.
    #[error("no numbers left: {detail}")]
    #[non_exhaustive]
    Exhausted {
        /// What Bates says.
        detail: Box<str>,
        /// Whether a number may be burned.
        may_burn: bool,
    },
    /// Bates refused the call.
    #[error("Bates refused the call: {code}: {detail}{}", burned(*may_burn))]
    #[non_exhaustive]
    Refused {
        /// The stable code, such as `bad_scope`, for programs to compare.
        code: Box<str>,
        /// What Bates says.
        detail: Box<str>,
        /// The status of the answer.
        status: u16,
        /// Whether a number may be burned.
        may_burn: bool,
    },
    /// The server did not answer.
    #[error("no answer from {host} after {attempts} attempt(s): {cause}{}", burned(*may_burn))]
    #[non_exhaustive]
    NoAnswer {
        /// The server, as `host:port`.
        host: Box<str>,
        /// Why the last attempt failed.
        cause: Box<str>,
        /// How often it was tried.
        attempts: u32,
        /// Whether a number may be burned.
        may_burn: bool,
    },
    /// The server has no trusted certificate. Nothing was sent to it.
    #[error("untrusted certificate from {host}: {cause}")]
    #[non_exhaustive]
    Untrusted {
        /// The server, as `host:port`.
        host: Box<str>,
        /// What is wrong with the certificate.
        cause: Box<str>,
    },
    /// The answer does not come from Bates.
    #[error("unexpected HTTP {status} from {host}: {reason}{}", burned(*may_burn))]
    #[non_exhaustive]
    Unexpected {
        /// The server, as `host:port`.
        host: Box<str>,
        /// The status of the answer.
        status: u16,
        /// What is unexpected about it.
        reason: Box<str>,
        /// Whether a number may be burned.
        may_burn: bool,
    },
}

fn burned(may_burn: bool) -> &'static str {
    if may_burn { " (a number may be burned)" } else { "" }
}

impl Error {
    pub(crate) fn invalid(what: &'static str, reason: impl Into<Box<str>>) -> Self {
        Self::BadArgument { what, reason: reason.into() }
    }

    pub(crate) fn from_problem(problem: Problem) -> Self {
        let Problem { code, detail, status, may_burn, .. } = problem;
        let detail = detail.into();
        if code == EXHAUSTED {
            return Self::Exhausted { detail, may_burn };
        }
        Self::Refused { code: code.into(), detail, status, may_burn }
    }

    /// Whether the same call may succeed later. Asking again can leave a gap: see [`may_burn`](Self::may_burn).
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::BadArgument { .. } | Self::Exhausted { .. } | Self::Untrusted { .. } => false,
            Self::Refused { status, .. } => is_temporary(*status),
            Self::NoAnswer { .. } => true,
            Self::Unexpected { status, .. } => *status >= 500,
        }
    }

    /// Whether a number may have been taken that no caller got. It is then a gap; asking again does not return it.
    pub fn may_burn(&self) -> bool {
        match self {
            Self::BadArgument { .. } | Self::Untrusted { .. } => false,
            Self::Exhausted { may_burn, .. }
            | Self::Refused { may_burn, .. }
            | Self::NoAnswer { may_burn, .. }
            | Self::Unexpected { may_burn, .. } => *may_burn,
        }
    }

    /// The stable code, if Bates answered with one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Exhausted { .. } => Some(EXHAUSTED),
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether Bates is unreachable or unable to answer now. A refusal is an answer.
    pub(crate) fn is_away(&self) -> bool {
        !matches!(self, Self::Exhausted { .. } | Self::Refused { status: ..500, .. })
    }

    /// Adds the number of attempts, and whether one may have burned a number.
    pub(crate) fn with_attempts(mut self, count: u32, is_burned: bool) -> Self {
        match &mut self {
            Self::NoAnswer { attempts, may_burn, .. } => {
                (*attempts, *may_burn) = (count, *may_burn || is_burned);
            }
            Self::Exhausted { may_burn, .. }
            | Self::Refused { may_burn, .. }
            | Self::Unexpected { may_burn, .. } => *may_burn |= is_burned,
            Self::BadArgument { .. } | Self::Untrusted { .. } => {}
        }
        self
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self::invalid("name or identifier", error.to_string())
    }
}

/// Whether the same call may succeed later.
pub(crate) fn is_temporary(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Why a pool cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address of Redis is invalid.
    #[error("invalid address of Redis: {0}")]
    Redis(Box<str>),
    /// The address of Bates is invalid.
    #[error("invalid address of Bates: {0}")]
    Bates(Box<str>),
    /// The secret is invalid.
    #[error("invalid secret: {0}")]
    Secret(Box<str>),
}

/// Why a call got no numbers, with the outcome of asking Redis. A number may have been burned.
#[derive(Debug, Error)]
pub enum PopError {
    /// The scope has no more numbers.
    #[error("no numbers left: {detail} (Redis: {redis})")]
    Exhausted {
        /// What Bates says.
        detail: Box<str>,
        /// The outcome of asking Redis.
        redis: Box<str>,
    },
    /// Bates refused the call.
    #[error("Bates refused the call: {code}: {detail} (Redis: {redis})")]
    Refused {
        /// The stable code.
        code: Box<str>,
        /// What Bates says.
        detail: Box<str>,
        /// The outcome of asking Redis.
        redis: Box<str>,
    },
    /// This process was forked from the one that opened the pool.
    #[error("this process was forked from the one that opened the pool: open a pool in this process")]
    Forked,
    /// Neither Redis nor Bates is available.
    #[error("neither Redis nor Bates is available. Redis: {redis}. Bates: {bates}")]
    Away {
        /// The outcome of asking Redis.
        redis: Box<str>,
        /// The outcome of asking Bates.
        bates: Box<str>,
    },
}

#[derive(Debug, Error)]
pub(crate) enum ListError {
    #[error("{0}")]
    Redis(#[from] redis::RedisError),
    #[error("{0} timed out")]
    TimedOut(&'static str),
    #[error("{0}")]
    Unexpected(Box<str>),
    #[error("cannot check whether Bates filled the list: {0}")]
    Attach(Error),
    #[error("Bates did not fill this list: {0}")]
    Mismatch(Box<str>),
}

//! Why a pool gives no number, or cannot be taken from at all. What Redis and Bates said is for people.

use super::Error;

/// Why settings name no pool.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address of Redis.
    #[error("no address of Redis: {0}")]
    Redis(Box<str>),
    /// The address of Bates.
    #[error("no address of Bates: {0}")]
    Bates(Box<str>),
    /// The secret of Bates.
    #[error("the secret cannot be used: {0}")]
    Secret(Box<str>),
}

/// Why a call got no numbers. Each says what came of asking Redis; a number may have been burned, none is given twice.
#[derive(Debug, thiserror::Error)]
pub enum PopError {
    /// There are no more in the scope.
    #[error("no number is left: {detail} (Redis: {redis})")]
    Exhausted {
        /// What Bates says.
        detail: Box<str>,
        /// What came of asking Redis.
        redis: Box<str>,
    },
    /// Bates does not take the call.
    #[error("Bates refuses: {code}: {detail} (Redis: {redis})")]
    Refused {
        /// The code of the error.
        code: Box<str>,
        /// What Bates says.
        detail: Box<str>,
        /// What came of asking Redis.
        redis: Box<str>,
    },
    /// This process was forked from the one that opened the pool.
    #[error("this process was forked from the one that opened the pool: open a pool in this process")]
    Forked,
    /// Neither of the two can be asked.
    #[error("neither Redis nor Bates gives numbers now. Redis: {redis}. Bates: {bates}")]
    Away {
        /// What came of asking Redis.
        redis: Box<str>,
        /// What came of asking Bates.
        bates: Box<str>,
    },
}

impl PopError {
    /// An error of Bates, with what came of asking Redis.
    pub(crate) fn of(error: Error, redis: Box<str>) -> Self {
        match error {
            Error::Exhausted { detail, .. } => Self::Exhausted { detail, redis },
            Error::Refused { code, detail, status: ..500, .. } => {
                Self::Refused { code: code.as_str().into(), detail, redis }
            }
            error => Self::Away { redis, bates: error.to_string().into() },
        }
    }
}

/// What came of asking Redis.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TapError {
    /// The server, or the way to it.
    #[error("{0}")]
    Redis(#[from] redis::RedisError),
    /// No answer in time.
    #[error("no answer {0}")]
    Late(&'static str),
    /// It answered what nobody asked for.
    #[error("{0}")]
    Strange(Box<str>),
    /// Bates does not tell the epoch of this server's list.
    #[error("whether its list is the one that Bates filled cannot be learned: {0}")]
    Attach(Error),
    /// Told again and again that it is another list.
    #[error("its list is not the one that Bates filled last: {0}")]
    Other(Box<str>),
}

//! Why a pool gives no number, or cannot be taken from at all. What Redis and Bates said is for people.

use thiserror::Error;

/// Why settings name no pool.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address of Redis.
    #[error("no address of Redis: {0}")]
    Redis(Box<str>),
    /// The address of Bates.
    #[error("no address of Bates: {0}")]
    Bates(Box<str>),
}

/// Why a call got no numbers. Each says what came of asking Redis; a number may have been burned, none is given twice.
#[derive(Debug, Error)]
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

/// What came of asking Bates.
#[derive(Debug, Error)]
pub(crate) enum BatesError {
    /// It cannot be asked, or cannot answer now.
    #[error("{0}")]
    Away(Box<str>),
    /// It does not take the call.
    #[error("{code}: {detail}")]
    Refused { code: Box<str>, detail: Box<str> },
}

impl BatesError {
    /// With what came of asking Redis, an error of a call.
    pub(crate) fn with(self, redis: Box<str>) -> PopError {
        match self {
            Self::Away(bates) => PopError::Away { redis, bates },
            Self::Refused { code, detail } if &*code == "exhausted" => PopError::Exhausted { detail, redis },
            Self::Refused { code, detail } => PopError::Refused { code, detail, redis },
        }
    }

    /// Whether the scope has ended.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if &**code == "exhausted")
    }
}

/// What came of asking Redis.
#[derive(Debug, Error)]
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
    Attach(BatesError),
    /// Told again and again that it is another list.
    #[error("its list is not the one that Bates filled last: {0}")]
    Other(Box<str>),
}

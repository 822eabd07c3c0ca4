//! Tokens that were made at run time. The store has digests of their secrets only.

use std::time::Duration;

use jiff::Timestamp;

use crate::code::ErrorCode;
use crate::series::SeriesName;
use crate::store::StoreError;

/// A named caller in the store. Its secret exists only where it was shown when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerToken {
    pub name: Box<str>,
    /// Its permissions, as a front end describes them.
    pub grant: Box<str>,
    /// SHA-256 of the secret.
    pub digest: SecretDigest,
    /// During a rotation: the secret before, until it ends.
    pub previous: Option<PreviousSecret>,
    pub created: Timestamp,
    /// `None`: never.
    pub expires: Option<Timestamp>,
}

pub type SecretDigest = [u8; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousSecret {
    pub digest: SecretDigest,
    pub ends: Timestamp,
}

impl CallerToken {
    /// The token with a new secret. The secret before is accepted for `overlap` more; an older one ends now.
    #[must_use]
    pub fn rotated(&self, digest: SecretDigest, now: Timestamp, overlap: Duration) -> Self {
        let ends = now.checked_add(overlap).unwrap_or(Timestamp::MAX);
        let previous = (!overlap.is_zero()).then_some(PreviousSecret { digest: self.digest, ends });
        Self { digest, previous, ..self.clone() }
    }

    /// The digests that are accepted at a time.
    pub fn valid_digests(&self, now: Timestamp) -> impl Iterator<Item = SecretDigest> {
        let is_valid = self.expires.is_none_or(|expires| now < expires);
        let previous = self.previous.filter(|previous| now < previous.ends).map(|previous| previous.digest);
        [Some(self.digest), previous].into_iter().flatten().filter(move |_| is_valid)
    }
}

/// A compare-and-set of a token: `None` means that no token has the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenChange {
    pub name: Box<str>,
    pub before: Option<CallerToken>,
    pub after: Option<CallerToken>,
}

impl TokenChange {
    /// Whether a store may write the change: its token is as it was before the change, or as it will be after it.
    pub fn fits(&self, stored: Option<&CallerToken>) -> bool {
        stored == self.before.as_ref() || stored == self.after.as_ref()
    }
}

/// Names that mean something else: the Redis user without a name, a client without an address, and the server itself in the
/// operations log.
const RESERVED_NAMES: [&str; 4] = ["default", "unknown", "configuration", "retention"];

/// Whether a caller may have this name.
pub fn is_caller_name(name: &str) -> bool {
    name.parse::<SeriesName>().is_ok() && !RESERVED_NAMES.contains(&name)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    #[error(
        "the store has no token {0:?} that this caller manages; a token of the configuration file is changed there"
    )]
    Unknown(Box<str>),
    #[error("there is a token {0:?} already: revoke it first, or rotate its secret")]
    Exists(Box<str>),
    #[error("the configuration file has a token {0:?}: choose another name, or change that token there")]
    InFile(Box<str>),
    #[error("token {name:?} expired at {at}: revoke it, and add another")]
    Expired { name: Box<str>, at: Timestamp },
    #[error("token {0:?} was changed meanwhile: look at it, then try again")]
    ChangedMeanwhile(Box<str>),
    #[error("the store has {TOKENS_MAX} tokens, which is the limit: revoke some")]
    TooMany,
    #[error("there are {max} tokens named {first_part}.…, which is the limit: revoke some")]
    TooManyBelow { first_part: Box<str>, max: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Max tokens in the store. Every node keeps them in memory.
pub const TOKENS_MAX: usize = 10_000;

/// Max tokens that callers with limited rights make below one first part of a name, however deep.
const TOKENS_BELOW_MAX: usize = 100;

/// Refuses one token more beside those of the store.
pub(super) fn check_count(tokens: &[CallerToken], name: &str, is_limited: bool) -> Result<(), TokenError> {
    if tokens.len() >= TOKENS_MAX {
        return Err(TokenError::TooMany);
    }
    let first_part = name.split('.').next().unwrap_or(name);
    let is_below =
        |token: &&CallerToken| token.name.strip_prefix(first_part).is_some_and(|rest| rest.starts_with('.'));
    if is_limited && tokens.iter().filter(is_below).count() >= TOKENS_BELOW_MAX {
        let first_part = first_part.into();
        return Err(TokenError::TooManyBelow { first_part, max: TOKENS_BELOW_MAX });
    }
    Ok(())
}

impl TokenError {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::UNKNOWN_TOKEN,
            Self::Exists(_) | Self::InFile(_) | Self::Expired { .. } | Self::ChangedMeanwhile(_) => {
                ErrorCode::TOKEN_EXISTS
            }
            Self::TooMany | Self::TooManyBelow { .. } => ErrorCode::TOO_MANY_TOKENS,
            Self::Store(error) => error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_caller_makes_a_hundred_tokens_below_the_first_part_of_its_name() {
        let token = |name: String| CallerToken {
            name: name.into(),
            grant: Box::default(),
            digest: [0; 32],
            previous: None,
            created: at(0),
            expires: None,
        };
        let nested = |n| if n % 2 == 0 { format!("ten.a{n}") } else { format!("ten.a.b.c{n}") };
        let mut tokens: Vec<_> = (0..99).map(nested).map(token).collect();
        tokens.extend((0..200).map(|n| token(format!("tenant.{n}"))));
        assert_eq!(check_count(&tokens, "ten.a.new", true), Ok(()));
        tokens.push(token("ten.b".to_owned()));
        let refused = check_count(&tokens, "ten.a.new", true);
        assert_eq!(refused, Err(TokenError::TooManyBelow { first_part: "ten".into(), max: 100 }));
        assert_eq!(check_count(&tokens, "ten.a.new", false), Ok(()), "the operator has no such limit");
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn token() -> CallerToken {
        CallerToken {
            name: "acme".into(),
            grant: "{}".into(),
            digest: [1; 32],
            previous: None,
            created: at(0),
            expires: Some(at(1_000)),
        }
    }

    fn digests(of: &CallerToken, second: i64) -> Vec<u8> {
        of.valid_digests(at(second)).map(|digest| digest[0]).collect()
    }

    #[test]
    fn a_rotation_accepts_two_secrets_until_the_overlap_ends() {
        let rotated = token().rotated([2; 32], at(100), Duration::from_secs(10));
        assert_eq!((digests(&rotated, 109), digests(&rotated, 110)), (vec![2, 1], vec![2]));
        let again = rotated.rotated([3; 32], at(105), Duration::from_secs(10));
        assert_eq!(digests(&again, 105), [3, 2], "at most two at once");
        assert_eq!(digests(&token().rotated([2; 32], at(100), Duration::ZERO), 100), [2]);
        let forever = token().rotated([2; 32], at(100), Duration::MAX);
        assert_eq!(digests(&forever, 999), [2, 1]);
    }

    #[test]
    fn an_expired_token_has_no_secret() {
        let rotated = token().rotated([2; 32], at(999), Duration::from_secs(100));
        assert_eq!((digests(&rotated, 999), digests(&rotated, 1_000)), (vec![2, 1], vec![]));
        let lasting = CallerToken { expires: None, ..token() };
        assert_eq!(digests(&lasting, 1_000_000), [1]);
    }
}

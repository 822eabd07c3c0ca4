//! The secrets, the shared one and those of tokens, and the one place where every front end has them checked. Must never
//! keep, show or log a secret: what is kept is its digest.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Who may use the server: callers that know a secret; all callers where there is none.
#[derive(Clone)]
pub struct Access {
    kept: Vec<Kept>,
}

/// The shared secret has no name.
#[derive(Clone)]
struct Kept {
    name: Option<Arc<str>>,
    digest: [u8; 32],
}

/// Who asks: a token by its name, or an address. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    who: Arc<str>,
    is_token: bool,
}

impl Caller {
    pub fn at(address: Option<SocketAddr>) -> Self {
        let address = address.map(|address| address.ip().to_canonical().to_string());
        Self { who: address.map_or_else(|| "unknown".into(), Into::into), is_token: false }
    }

    /// The name of the token, or the address.
    pub fn who(&self) -> &str {
        &self.who
    }

    pub fn token(&self) -> Option<&str> {
        self.is_token.then_some(&*self.who)
    }

    /// The owner of idempotency keys: a token by itself, all other callers together.
    pub fn owner(&self) -> &str {
        self.token().unwrap_or_default()
    }
}

impl Access {
    /// Without a secret, open to all callers that can connect.
    pub fn new(secret: Option<&str>) -> Self {
        let kept = secret.map(|secret| Kept { name: None, digest: digest(secret.as_bytes()) });
        Self { kept: kept.into_iter().collect() }
    }

    #[must_use]
    pub fn with_token(mut self, name: &str, secret: &str) -> Self {
        self.kept.push(Kept { name: Some(name.into()), digest: digest(secret.as_bytes()) });
        self
    }

    pub fn is_open(&self) -> bool {
        self.kept.is_empty()
    }

    /// The caller that gives this secret and connects as `stranger`; `None` if it is wrong. A wrong secret takes as
    /// long as a right one: digests have one length, and all are compared.
    pub fn admits(&self, given: &[u8], stranger: &Caller) -> Option<Caller> {
        let given = digest(given);
        let mut found = self.is_open().then(|| stranger.clone());
        for Kept { name, digest } in &self.kept {
            let is_this: bool = digest.ct_eq(&given).into();
            if is_this {
                found = Some(match name {
                    Some(name) => Caller { who: name.clone(), is_token: true },
                    None => stranger.clone(),
                });
            }
        }
        found
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "Access(open)" } else { "Access(guarded)" })
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger() -> Caller {
        Caller::at(Some("10.0.0.7:4711".parse().expect("an address")))
    }

    #[test]
    fn only_the_whole_secret_is_admitted() {
        let access = Access::new(Some("open sesame"));
        assert!(!access.is_open());
        assert_eq!(access.admits(b"open sesame", &stranger()), Some(stranger()));
        for wrong in [&b""[..], b"open", b"open sesame ", b"Open sesame", b"open sesamf", b"\xff"] {
            assert_eq!(access.admits(wrong, &stranger()), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn a_token_is_known_by_its_name_and_all_others_by_their_address() {
        let access = Access::new(Some("shared")).with_token("registry", "one").with_token("clinic", "two");
        let told = |given: &[u8]| {
            let caller = access.admits(given, &stranger())?;
            Some((caller.who().to_owned(), caller.owner().to_owned()))
        };
        let pair = |who: &str, owner: &str| Some((who.to_owned(), owner.to_owned()));
        assert_eq!(told(b"one"), pair("registry", "registry"));
        assert_eq!(told(b"two"), pair("clinic", "clinic"));
        assert_eq!(told(b"shared"), pair("10.0.0.7", ""));
        assert_eq!((told(b"registry"), told(b"")), (None, None));
        assert!(!Access::new(None).with_token("registry", "one").is_open());
    }

    #[test]
    fn without_a_secret_everybody_is_admitted() {
        let access = Access::new(None);
        assert!(access.is_open());
        assert!([&b""[..], b"anything"].iter().all(|given| access.admits(given, &stranger()).is_some()));
    }

    #[test]
    fn an_address_is_written_in_one_way() {
        let mapped = Caller::at(Some("[::ffff:10.0.0.7]:4711".parse().expect("an address")));
        assert_eq!((mapped.who(), Caller::at(None).who()), ("10.0.0.7", "unknown"));
    }

    #[test]
    fn neither_a_secret_nor_its_digest_is_shown() {
        let access = Access::new(Some("open sesame")).with_token("registry", "hush");
        assert_eq!(format!("{access:?}"), "Access(guarded)");
    }
}

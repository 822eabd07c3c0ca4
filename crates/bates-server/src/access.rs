//! Authentication: the shared secret and the secrets of tokens, which both front ends check here. Must never store, show
//! or log a secret: only its digest is stored.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Who may use the server: callers that know a secret, or every caller if no secret is configured.
#[derive(Clone)]
pub struct Access {
    credentials: Vec<Credential>,
    certificates: Vec<CertificateName>,
}

#[derive(Clone)]
struct Credential {
    /// The name of the token; `None` for the shared secret.
    name: Option<Arc<str>>,
    digest: [u8; 32],
}

/// A name in a client certificate, and the token of its holder.
#[derive(Clone)]
struct CertificateName {
    certificate: Box<str>,
    token: Arc<str>,
}

/// The client of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: Option<SocketAddr>,
    /// The names in its certificate, if a trusted authority signed it.
    pub certificate_names: Vec<Box<str>>,
}

/// The caller of a request: a token, or else an address. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    name: Arc<str>,
    is_token: bool,
}

impl Caller {
    pub fn from_address(address: Option<SocketAddr>) -> Self {
        let address = address.map(|address| address.ip().to_canonical().to_string());
        Self { name: address.map_or_else(|| "unknown".into(), Into::into), is_token: false }
    }

    /// The name of the token, or the address.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn token(&self) -> Option<&str> {
        self.is_token.then_some(&*self.name)
    }

    /// The namespace of the caller's idempotency keys: its own for a token, one for all other callers.
    pub fn key_owner(&self) -> &str {
        self.token().unwrap_or_default()
    }
}

impl Access {
    /// Without a secret, every caller that can connect is accepted.
    pub fn new(secret: Option<&str>) -> Self {
        let shared = secret.map(|secret| Credential { name: None, digest: digest(secret.as_bytes()) });
        Self { credentials: shared.into_iter().collect(), certificates: Vec::new() }
    }

    #[must_use]
    pub fn with_token(mut self, name: &str, secret: &str) -> Self {
        self.credentials.push(Credential { name: Some(name.into()), digest: digest(secret.as_bytes()) });
        self
    }

    /// A client whose verified certificate has the name `certificate` is the caller of the token `name`, without a secret.
    #[must_use]
    pub fn with_certificate(mut self, name: &str, certificate: &str) -> Self {
        self.certificates.push(CertificateName { certificate: certificate.into(), token: name.into() });
        self
    }

    pub fn is_open(&self) -> bool {
        self.credentials.is_empty() && self.certificates.is_empty()
    }

    /// The caller of a connection without a secret: by its certificate, or by its address if every caller is accepted.
    /// If a certificate has names of several tokens, the token that was added first.
    pub fn caller_without_secret(&self, peer: &Peer) -> Option<Caller> {
        let is_named = |it: &&CertificateName| peer.certificate_names.contains(&it.certificate);
        let token = self.certificates.iter().find(is_named);
        let by_certificate = token.map(|it| Caller { name: it.token.clone(), is_token: true });
        by_certificate.or_else(|| self.is_open().then(|| Caller::from_address(peer.address)))
    }

    /// The caller with this secret, connected as `peer`; `None` if the secret is wrong. A wrong secret takes as long as a
    /// correct one: all digests have the same length, and all are compared.
    pub fn authenticate(&self, secret: &[u8], peer: &Caller) -> Option<Caller> {
        let given = digest(secret);
        let mut caller = self.is_open().then(|| peer.clone());
        for Credential { name, digest } in &self.credentials {
            let is_match: bool = digest.ct_eq(&given).into();
            if is_match {
                caller = Some(match name {
                    Some(name) => Caller { name: name.clone(), is_token: true },
                    None => peer.clone(),
                });
            }
        }
        caller
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

    fn peer() -> Caller {
        Caller::from_address(Some("10.0.0.7:4711".parse().expect("an address")))
    }

    #[test]
    fn only_the_exact_secret_is_accepted() {
        let access = Access::new(Some("open sesame"));
        assert!(!access.is_open());
        assert_eq!(access.authenticate(b"open sesame", &peer()), Some(peer()));
        for wrong in [&b""[..], b"open", b"open sesame ", b"Open sesame", b"open sesamf", b"\xff"] {
            assert_eq!(access.authenticate(wrong, &peer()), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn a_token_has_its_name_and_other_callers_their_address() {
        let access = Access::new(Some("shared")).with_token("registry", "one").with_token("clinic", "two");
        let name_and_owner = |secret: &[u8]| {
            let caller = access.authenticate(secret, &peer())?;
            Some((caller.name().to_owned(), caller.key_owner().to_owned()))
        };
        let pair = |name: &str, owner: &str| Some((name.to_owned(), owner.to_owned()));
        assert_eq!(name_and_owner(b"one"), pair("registry", "registry"));
        assert_eq!(name_and_owner(b"two"), pair("clinic", "clinic"));
        assert_eq!(name_and_owner(b"shared"), pair("10.0.0.7", ""));
        assert_eq!((name_and_owner(b"registry"), name_and_owner(b"")), (None, None));
        assert!(!Access::new(None).with_token("registry", "one").is_open());
    }

    #[test]
    fn without_a_secret_every_caller_is_accepted() {
        let access = Access::new(None);
        assert!(access.is_open());
        assert!([&b""[..], b"anything"].iter().all(|secret| access.authenticate(secret, &peer()).is_some()));
    }

    #[test]
    fn an_ipv4_mapped_address_is_shown_as_ipv4() {
        let mapped = Caller::from_address(Some("[::ffff:10.0.0.7]:4711".parse().expect("an address")));
        assert_eq!((mapped.name(), Caller::from_address(None).name()), ("10.0.0.7", "unknown"));
    }

    #[test]
    fn debug_output_has_neither_secret_nor_digest() {
        let access = Access::new(Some("open sesame")).with_token("registry", "hush");
        assert_eq!(format!("{access:?}"), "Access(guarded)");
    }
}

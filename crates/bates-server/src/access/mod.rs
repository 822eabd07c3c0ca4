//! Authentication: the shared secret and the secrets of tokens, which both front ends check here, and the permissions of
//! each. Must never store, show or log a secret: only its digest is stored.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bates_core::{LeaseOwner, Permissions, Right, Rights, SeriesSet};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Who may use the server: callers that know a secret, or every caller if no secret is configured.
#[derive(Clone)]
pub struct Access {
    credentials: Vec<Credential>,
    /// Of the shared secret, and of every caller if no secret is configured.
    all: Arc<Permissions>,
    /// Of a caller of the OpenG2P contract without a secret, where that is allowed.
    contract: Arc<Permissions>,
    certificates: Vec<CertificateName>,
}

#[derive(Clone)]
struct Credential {
    /// The name of the token; `None` for the shared secret.
    name: Option<Arc<str>>,
    digest: [u8; 32],
    permissions: Arc<Permissions>,
}

/// A name in a client certificate, and the token of its holder.
#[derive(Clone)]
struct CertificateName {
    certificate: Box<str>,
    caller: Caller,
}

/// The client of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: Option<SocketAddr>,
    /// The client, named by its address.
    pub caller: Caller,
    /// The names in its certificate, if a trusted authority signed it.
    pub certificate_names: Vec<Box<str>>,
}

impl Peer {
    pub fn new(address: Option<SocketAddr>, certificate_names: Vec<Box<str>>) -> Self {
        Self { address, caller: Caller::from_address(address), certificate_names }
    }
}

/// The caller of a request: a token, or else an address; and what it may do. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    name: Arc<str>,
    is_token: bool,
    permissions: Arc<Permissions>,
}

impl Caller {
    /// A caller that may do nothing yet.
    pub fn from_address(address: Option<SocketAddr>) -> Self {
        let address = address.map(|address| address.ip().to_canonical().to_string());
        let name = address.map_or_else(|| "unknown".into(), Into::into);
        let permissions = Arc::new(Permissions::new(Rights::default(), SeriesSet::All));
        Self { name, is_token: false, permissions }
    }

    fn with_permissions(&self, permissions: &Arc<Permissions>) -> Self {
        Self { permissions: permissions.clone(), ..self.clone() }
    }

    #[inline]
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Whose leases the caller may end.
    pub fn lease_owner(&self) -> LeaseOwner {
        self.token().map_or(LeaseOwner::Any, |name| LeaseOwner::Caller(name.into()))
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
        let all = Arc::new(Permissions::all());
        let contract = Permissions::new([Right::Read, Right::Take].into_iter().collect(), SeriesSet::All);
        let permissions = all.clone();
        let shared =
            secret.map(|secret| Credential { name: None, digest: digest(secret.as_bytes()), permissions });
        let (credentials, certificates) = (shared.into_iter().collect(), Vec::new());
        Self { credentials, all, contract: Arc::new(contract), certificates }
    }

    #[must_use]
    pub fn with_token(mut self, name: &str, secret: &str, permissions: Permissions) -> Self {
        let (name, permissions) = (Some(name.into()), Arc::new(permissions));
        self.credentials.push(Credential { name, digest: digest(secret.as_bytes()), permissions });
        self
    }

    /// The caller of a request without a secret to the OpenG2P contract, where that is allowed.
    pub(crate) fn admit_to_contract(&self, peer: &Peer) -> Caller {
        peer.caller.with_permissions(&self.contract)
    }

    /// A client whose verified certificate has the name `certificate` is the caller of the token `name`, without a secret.
    #[must_use]
    pub fn with_certificate(mut self, name: &str, certificate: &str, permissions: Permissions) -> Self {
        let caller = Caller { name: name.into(), is_token: true, permissions: Arc::new(permissions) };
        self.certificates.push(CertificateName { certificate: certificate.into(), caller });
        self
    }

    pub fn is_open(&self) -> bool {
        self.credentials.is_empty() && self.certificates.is_empty()
    }

    /// The caller of a connection without a secret: by its certificate, or by its address if every caller is accepted.
    /// If a certificate has names of several tokens, the token that was added first.
    pub fn caller_without_secret(&self, peer: &Peer) -> Option<Caller> {
        let is_named = |it: &&CertificateName| peer.certificate_names.contains(&it.certificate);
        let by_certificate = self.certificates.iter().find(is_named).map(|it| it.caller.clone());
        let by_address = || peer.caller.with_permissions(&self.all);
        by_certificate.or_else(|| self.is_open().then(by_address))
    }

    /// The caller with this secret, connected as `peer`; `None` if the secret is wrong. A wrong secret takes as long as a
    /// correct one: all digests have the same length, and all are compared.
    pub fn authenticate(&self, secret: &[u8], peer: &Caller) -> Option<Caller> {
        let given = digest(secret);
        let mut caller = self.is_open().then(|| peer.with_permissions(&self.all));
        for Credential { name, digest, permissions } in &self.credentials {
            let is_match: bool = digest.ct_eq(&given).into();
            if is_match {
                caller = Some(match name {
                    Some(name) => {
                        Caller { name: name.clone(), is_token: true, permissions: permissions.clone() }
                    }
                    None => peer.with_permissions(permissions),
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
        assert_eq!(access.authenticate(b"open sesame", &peer()), Some(peer().with_permissions(&access.all)));
        for wrong in [&b""[..], b"open", b"open sesame ", b"Open sesame", b"open sesamf", b"\xff"] {
            assert_eq!(access.authenticate(wrong, &peer()), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn a_token_has_its_name_and_other_callers_their_address() {
        let access = Access::new(Some("shared"))
            .with_token("registry", "one", Permissions::all())
            .with_token("clinic", "two", Permissions::all());
        let name_and_owner = |secret: &[u8]| {
            let caller = access.authenticate(secret, &peer())?;
            Some((caller.name().to_owned(), caller.key_owner().to_owned()))
        };
        let pair = |name: &str, owner: &str| Some((name.to_owned(), owner.to_owned()));
        assert_eq!(name_and_owner(b"one"), pair("registry", "registry"));
        assert_eq!(name_and_owner(b"two"), pair("clinic", "clinic"));
        assert_eq!(name_and_owner(b"shared"), pair("10.0.0.7", ""));
        assert_eq!((name_and_owner(b"registry"), name_and_owner(b"")), (None, None));
        assert!(!Access::new(None).with_token("registry", "one", Permissions::all()).is_open());
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
        let access = Access::new(Some("open sesame")).with_token("registry", "hush", Permissions::all());
        assert_eq!(format!("{access:?}"), "Access(guarded)");
    }
}

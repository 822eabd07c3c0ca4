//! Authentication: the shared secret, the tokens of the configuration and those of the store, which both front ends check
//! here, and the permissions of each. Must never store, show or log a secret: only its digest is stored.

mod caller;
mod changes;
mod grant;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use bates_api::TokenGrant;
use bates_core::{Allowance, CallerToken, Permissions, Right, SecretDigest, SeriesSet, Timestamp, TokenSet};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use caller::Grant;
pub(crate) use caller::Payment;
pub use caller::{Caller, Peer};
use changes::ChangeRate;
pub(crate) use grant::LIST_MAX;
pub use grant::{QUOTA_MAX, RATE_MAX, SCOPES_MAX, build_permissions};

/// Who may use the server: callers that know a secret, or every caller if no secret is configured.
pub struct Access {
    /// Of the configuration.
    credentials: HashMap<SecretDigest, Credential>,
    certificates: Vec<CertificateName>,
    /// The tokens of the configuration, by name.
    tokens: Vec<(Arc<str>, Arc<Grant>)>,
    /// Of the store.
    stored: ArcSwap<HashMap<SecretDigest, StoredCredential>>,
    /// Serializes changes of `stored`.
    applying: Mutex<()>,
    /// By the first part of the names of tokens: those of a tenant share it.
    changes: Mutex<HashMap<Box<str>, Arc<ChangeRate>>>,
    /// Of every caller, if no secret is configured.
    all: Arc<Grant>,
    /// Of a caller of the OpenG2P contract without a secret, where that is allowed.
    contract: Arc<Grant>,
}

#[derive(Clone)]
struct Credential {
    /// The name of the token; `None` for the shared secret.
    name: Option<Arc<str>>,
    grant: Arc<Grant>,
}

#[derive(Clone)]
struct StoredCredential {
    credential: Credential,
    /// The description of the grant.
    text: Box<str>,
}

/// A name in a client certificate, and the token of its holder.
struct CertificateName {
    certificate: Box<str>,
    caller: Caller,
}

impl Access {
    /// Without a secret, every caller that can connect is accepted.
    pub fn new(secret: Option<&str>) -> Self {
        let all = Arc::new(Grant::new(Permissions::all(), None));
        let contract = Permissions::new([Right::Read, Right::Take].into_iter().collect(), SeriesSet::All);
        let shared = secret.map(|secret| {
            let credential = Credential { name: None, grant: Arc::new(Grant::new(Permissions::all(), None)) };
            (digest(secret.as_bytes()), credential)
        });
        Self {
            credentials: shared.into_iter().collect(),
            certificates: Vec::new(),
            tokens: Vec::new(),
            stored: ArcSwap::default(),
            applying: Mutex::default(),
            changes: Mutex::default(),
            all,
            contract: Arc::new(Grant::new(contract, None)),
        }
    }

    #[must_use]
    pub fn with_token(mut self, name: &str, secret: &str, permissions: Permissions) -> Self {
        let (name, grant) = self.add_token(name, permissions);
        self.credentials.insert(digest(secret.as_bytes()), Credential { name: Some(name), grant });
        self
    }

    /// A client whose verified certificate has the name `certificate` is the caller of the token `name`, without a secret.
    #[must_use]
    pub fn with_certificate(mut self, name: &str, certificate: &str, permissions: Permissions) -> Self {
        let (name, grant) = self.add_token(name, permissions);
        let caller = Caller::of_token(name, grant);
        self.certificates.push(CertificateName { certificate: certificate.into(), caller });
        self
    }

    /// The grant of a token of the configuration: one for its secret and its certificate.
    fn add_token(&mut self, name: &str, permissions: Permissions) -> (Arc<str>, Arc<Grant>) {
        if let Some(known) = self.tokens.iter().find(|(known, _)| **known == *name) {
            return known.clone();
        }
        let allowance = allowance_of(&permissions);
        let changes = Some(self.change_rate(name));
        let grant = Grant { changes, ..Grant::new(permissions, allowance) };
        self.tokens.push((name.into(), Arc::new(grant)));
        self.tokens[self.tokens.len() - 1].clone()
    }

    fn change_rate(&self, name: &str) -> Arc<ChangeRate> {
        let tenant = name.split('.').next().unwrap_or_default();
        self.changes.lock().entry(tenant.into()).or_default().clone()
    }

    /// The caller of a request without a secret to the OpenG2P contract, where that is allowed.
    pub(crate) fn admit_to_contract(&self, peer: &Peer) -> Caller {
        peer.caller.with_grant(&self.contract)
    }

    /// Whether every caller is accepted. Tokens of the store do not change that: any caller could revoke them.
    pub fn is_open(&self) -> bool {
        self.credentials.is_empty() && self.certificates.is_empty()
    }

    /// The tokens of the configuration, by name.
    pub fn configured_tokens(&self) -> Vec<(String, TokenGrant)> {
        let describe =
            |(name, grant): &(Arc<str>, Arc<Grant>)| (name.to_string(), grant::describe(&grant.permissions));
        let mut tokens: Vec<_> = self.tokens.iter().map(describe).collect();
        tokens.sort_by(|(one, _), (other, _)| one.cmp(other));
        tokens
    }

    /// A mark of each secret of the configuration, by the name of its token: another secret has another mark. Marks are so
    /// short that none confirms a guess.
    pub fn secret_marks(&self) -> BTreeMap<String, String> {
        let mark = |(secret, credential): (&SecretDigest, &Credential)| {
            let name = credential.name.as_deref().unwrap_or("the shared secret");
            let mark = digest(&[b"mark of ", &secret[..]].concat());
            (name.to_owned(), format!("{:02x}{:02x}", mark[0], mark[1]))
        };
        self.credentials.iter().map(mark).collect()
    }

    /// The caller of a connection without a secret: by its certificate, or by its address if every caller is accepted.
    /// If a certificate has names of several tokens, the token that was added first.
    pub fn caller_without_secret(&self, peer: &Peer) -> Option<Caller> {
        let is_named = |it: &&CertificateName| peer.certificate_names.contains(&it.certificate);
        let by_certificate = self.certificates.iter().find(is_named).map(|it| it.caller.clone());
        let by_address = || peer.caller.with_grant(&self.all);
        by_certificate.or_else(|| self.is_open().then(by_address))
    }

    /// The caller with this secret, connected as `peer`; `None` if the secret is wrong. Secrets are found by their digests:
    /// the time of the search tells nothing about a secret, because a caller cannot choose the digest of a guess.
    pub fn authenticate(&self, secret: &[u8], peer: &Caller) -> Option<Caller> {
        if self.is_open() {
            return Some(peer.with_grant(&self.all));
        }
        let digest = digest(secret);
        let stored = || self.stored.load().get(&digest).map(|stored| stored.credential.clone());
        let Credential { name, grant } = self.credentials.get(&digest).cloned().or_else(stored)?;
        Some(match name {
            Some(name) => Caller::of_token(name, grant),
            None => peer.with_grant(&grant),
        })
    }

    /// Accepts the tokens of the store that are valid at a time, and no others. A token of the configuration counts before
    /// one of the store with its name. Returns the names of tokens whose grants cannot be read: they are not accepted.
    pub fn apply_tokens(&self, tokens: impl FnOnce() -> TokenSet, now: Timestamp) -> Vec<Box<str>> {
        let _applying = self.applying.lock();
        // Under the lock: an older set must not replace a newer one.
        let tokens = tokens();
        let before = self.stored.load_full();
        let configured: HashSet<&str> = self.tokens.iter().map(|(name, _)| &**name).collect();
        let (mut valid, mut unreadable) = (HashMap::new(), Vec::new());
        for token in tokens.iter().filter(|token| !configured.contains(&*token.name)) {
            match read_credential(token, &before, self.change_rate(&token.name)) {
                Ok(stored) => valid.extend(token.valid_digests(now).map(|digest| (digest, stored.clone()))),
                Err(name) => unreadable.push(name),
            }
        }
        // Each secret ends by itself: the other secret of its token may go on.
        for (digest, stored) in &mut valid {
            if let Some(known) = before.get(digest).filter(|known| known.text == stored.text) {
                *stored = known.clone();
            } else {
                stored.credential.grant = Arc::new(stored.credential.grant.copy());
            }
        }
        let is_kept = |digest: &SecretDigest, grant: &Arc<Grant>| {
            valid
                .get(digest)
                .is_some_and(|kept: &StoredCredential| Arc::ptr_eq(&kept.credential.grant, grant))
        };
        let ended: Vec<Arc<Grant>> = before
            .iter()
            .map(|(digest, stored)| (digest, &stored.credential.grant))
            .filter(|(digest, grant)| !is_kept(digest, grant))
            .map(|(_, grant)| grant.clone())
            .collect();
        self.stored.store(Arc::new(valid));
        for grant in ended {
            grant.has_ended.store(true, Ordering::Relaxed);
        }
        unreadable
    }
}

/// The credential of a token: with the allowance that it has already, if its limits are the same.
fn read_credential(
    token: &CallerToken,
    before: &HashMap<SecretDigest, StoredCredential>,
    changes: Arc<ChangeRate>,
) -> Result<StoredCredential, Box<str>> {
    let grant = serde_json::from_str(&token.grant).ok();
    let permissions = grant.and_then(|grant| build_permissions(&grant).ok());
    let permissions = permissions.ok_or_else(|| token.name.clone())?;
    let of_token = |known: &&StoredCredential| known.credential.name.as_deref() == Some(&*token.name);
    let known = before.values().find(of_token).and_then(|known| known.credential.grant.allowance.clone());
    let known = known.filter(|known| known.limits() == permissions.rates());
    let allowance = known.or_else(|| allowance_of(&permissions));
    let (expires, changes) = (token.expires, Some(changes));
    let grant = Grant { expires, changes, ..Grant::new(permissions, allowance) };
    let credential = Credential { name: Some((&*token.name).into()), grant: Arc::new(grant) };
    Ok(StoredCredential { credential, text: token.grant.clone() })
}

fn allowance_of(permissions: &Permissions) -> Option<Arc<Allowance>> {
    let rates = permissions.rates();
    (rates.rate.is_some() || rates.quota.is_some()).then(|| Arc::new(Allowance::new(rates)))
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "Access(open)" } else { "Access(guarded)" })
    }
}

pub(crate) fn digest(bytes: &[u8]) -> SecretDigest {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests;

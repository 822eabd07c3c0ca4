//! Who may call: holders of the shared secret, or of a named token with its own secret or certificate. Must never show a secret.

use std::net::SocketAddr;

use bates_server::Access;

use super::Mistakes;
use super::permissions::{self, read_permissions};
use super::reader::Reader;
use super::tree::Node;

const TOKEN_KEYS: [&str; 3] = ["secret", "secret_file", "certificate"];

/// The fewest characters of a secret where strangers can try one.
const SECRET_LENGTH_MIN: usize = 16;

/// Refuses short secrets if a port can be reached from other machines.
pub(super) fn check_secret_lengths(reader: &mut Reader<'_, '_>, listens: &[Option<SocketAddr>]) {
    let is_reachable = |address: &&SocketAddr| !address.ip().is_loopback();
    let Some(address) = listens.iter().flatten().find(is_reachable) else { return };
    let mut check = |node: &Node, of: &str| {
        let mut mistakes = Mistakes::default();
        let secret = read_secret(&mut Reader { tree: node, mistakes: &mut mistakes }, of);
        if let Some(length) = secret.map(|secret| secret.len()).filter(|length| *length < SECRET_LENGTH_MIN) {
            let problem = format!(
                "{of}the secret has {length} characters; at {address} it needs at least {SECRET_LENGTH_MIN}, such as \
                 those of openssl rand -base64 32"
            );
            let key = if node.get("secret").is_some() { "secret" } else { "secret_file" };
            reader.mistakes.add(node.origin_of([key]), problem);
        }
    };
    check(reader.tree, "");
    for (name, token) in reader.tree.get("tokens").and_then(Node::entries).unwrap_or_default() {
        check(token, &format!("tokens: {name}: "));
    }
}

/// `None` if there is a mistake.
pub(super) fn read_access(reader: &mut Reader<'_, '_>) -> Option<Access> {
    let before = reader.mistakes.count();
    let shared = read_secret(reader, "");
    let mut access = Access::new(shared.as_deref());
    let mut secrets: Vec<(&str, String)> = shared.into_iter().map(|one| ("the shared one", one)).collect();
    let mut certificates: Vec<(&str, String)> = Vec::new();
    for (name, node) in read_tokens(reader) {
        let (of, before) = (format!("tokens: {name}: "), reader.mistakes.count());
        let mut reader = Reader { tree: node, mistakes: reader.mistakes };
        let certificate = read_certificate(&mut reader, &of).map(str::to_owned);
        let secret = read_secret(&mut reader, &of);
        if reader.mistakes.count() == before && certificate.is_none() && secret.is_none() {
            reader.mistakes.add(&node.origin, format!("{of}expected secret, secret_file or certificate"));
        }
        check_is_own(&mut reader, &of, "certificate", certificate.as_ref(), &certificates);
        check_is_own(&mut reader, &of, "secret", secret.as_ref(), &secrets);
        if let Some(permissions) = read_permissions(&mut reader, &of) {
            if let Some(certificate) = &certificate {
                access = access.with_certificate(name, certificate, permissions.clone());
            }
            if let Some(secret) = &secret {
                access = access.with_token(name, secret, permissions.clone());
            }
        }
        certificates.extend(certificate.map(|certificate| (name, certificate)));
        secrets.extend(secret.map(|secret| (name, secret)));
    }
    (reader.mistakes.count() == before).then_some(access)
}

/// Refuses what another token has already: a caller must be told from all others.
fn check_is_own(
    reader: &mut Reader<'_, '_>,
    of: &str,
    what: &str,
    own: Option<&String>,
    known: &[(&str, String)],
) {
    if let Some((other, _)) = known.iter().find(|(_, known)| Some(known) == own) {
        let problem = format!("{of}same {what} as {other}: each token needs its own");
        reader.mistakes.add(&reader.tree.origin, problem);
    }
}

fn read_tokens<'t>(Reader { tree, mistakes }: &mut Reader<'t, '_>) -> Vec<(&'t str, &'t Node)> {
    let Some(node) = tree.get("tokens") else { return Vec::new() };
    let Some(entries) = node.entries() else {
        mistakes.add(
            &node.origin,
            "tokens: expected a map of names, each with a secret, secret_file or certificate",
        );
        return Vec::new();
    };
    let mut named = Vec::new();
    for (name, token) in entries {
        if !bates_core::is_caller_name(name) {
            let rule = "a lower-case letter, then up to 63 of a-z, 0-9, _, - and ., and not a reserved word";
            mistakes.add(&token.origin, format!("tokens: invalid name {name:?}: expected {rule}"));
        } else if let Some(keys) = token.entries()
            && keys.iter().all(|(key, _)| is_token_key(key))
        {
            named.push((&**name, token));
        } else {
            let keys = TOKEN_KEYS.into_iter().chain(permissions::KEYS).collect::<Vec<_>>().join(", ");
            mistakes.add(&token.origin, format!("tokens: {name}: expected a map with some of {keys}"));
        }
    }
    named
}

fn is_token_key(key: &str) -> bool {
    TOKEN_KEYS.contains(&key) || permissions::KEYS.contains(&key)
}

/// A name in the certificate of a client.
fn read_certificate<'t>(reader: &mut Reader<'t, '_>, of: &str) -> Option<&'t str> {
    let certificate = reader.text("certificate")?;
    if certificate.trim().is_empty() {
        reader.add_mistake("certificate", format!("{of}certificate is empty: set a name in the certificate"));
        return None;
    }
    Some(certificate)
}

fn read_secret(reader: &mut Reader<'_, '_>, of: &str) -> Option<String> {
    let (key, secret) = match (reader.text("secret"), reader.text("secret_file")) {
        (Some(_), Some(_)) => {
            reader.add_mistake("secret_file", format!("{of}expected secret or secret_file, not both"));
            return None;
        }
        (Some(secret), None) => ("secret", secret.to_owned()),
        (None, Some(file)) => ("secret_file", reader.read_secret_file(file, "secret_file", of)?),
        (None, None) => return None,
    };
    let is_visible = secret.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let problem = if secret.is_empty() {
        format!("{of}{key} is empty: set a secret, or remove the key")
    } else if !is_visible || secret.trim() != secret {
        format!("{of}{key} must be visible ASCII without spaces around it: it is sent in a header")
    } else {
        return Some(secret);
    };
    reader.add_mistake(key, problem);
    None
}

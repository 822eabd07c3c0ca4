//! Who may call: holders of the shared secret, or of a named token with its own secret or certificate. Must never show a secret.

use bates_server::Access;

use super::reader::Reader;
use super::tree::Node;

const TOKEN_KEYS: [&str; 3] = ["secret", "secret_file", "certificate"];

/// Reserved: `default` is the Redis user without a name, `unknown` a client without an address.
const RESERVED_NAMES: [&str; 2] = ["default", "unknown"];

/// `None` if there is a mistake.
pub(super) fn read_access(reader: &mut Reader<'_, '_>) -> Option<Access> {
    let before = reader.mistakes.count();
    let shared = read_secret(reader, "");
    let mut access = Access::new(shared.as_deref());
    let mut known: Vec<(&str, String)> = shared.into_iter().map(|one| ("the shared one", one)).collect();
    let mut certificates: Vec<(&str, &str)> = Vec::new();
    for (name, node) in read_tokens(reader) {
        let (of, before) = (format!("tokens: {name}: "), reader.mistakes.count());
        let certificate = read_certificate(&mut Reader { tree: node, mistakes: reader.mistakes }, &of);
        if let Some(certificate) = certificate {
            if let Some((other, _)) = certificates.iter().find(|(_, known)| *known == certificate) {
                let problem = format!("{of}same certificate as {other}: each token needs its own");
                reader.mistakes.add(&node.origin, problem);
            }
            access = access.with_certificate(name, certificate);
            certificates.push((name, certificate));
        }
        let Some(secret) = read_secret(&mut Reader { tree: node, mistakes: reader.mistakes }, &of) else {
            if reader.mistakes.count() == before && certificate.is_none() {
                reader.mistakes.add(&node.origin, format!("{of}expected secret, secret_file or certificate"));
            }
            continue;
        };
        if let Some((other, _)) = known.iter().find(|(_, known)| *known == secret) {
            let problem = format!("{of}same secret as {other}: each token needs its own");
            reader.mistakes.add(&node.origin, problem);
        }
        access = access.with_token(name, &secret);
        known.push((name, secret));
    }
    (reader.mistakes.count() == before).then_some(access)
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
        if name.parse::<bates_core::SeriesName>().is_err() || RESERVED_NAMES.contains(&&**name) {
            let rule = "a lower-case letter, then up to 63 of a-z, 0-9, _ and -, not default or unknown";
            mistakes.add(&token.origin, format!("tokens: invalid name {name:?}: expected {rule}"));
        } else if let Some(keys) = token.entries()
            && keys.iter().all(|(key, _)| TOKEN_KEYS.contains(&&**key))
        {
            named.push((&**name, token));
        } else {
            mistakes.add(
                &token.origin,
                format!("tokens: {name}: expected a map with secret, secret_file or certificate"),
            );
        }
    }
    named
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

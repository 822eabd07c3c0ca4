//! Who may call: holders of the shared secret, or of a named token with its own secret. Must never show a secret.

use bates_server::Access;

use super::reader::Reader;
use super::tree::Node;

const TOKEN_KEYS: [&str; 2] = ["secret", "secret_file"];

/// Reserved: `default` is the Redis user without a name, `unknown` a client without an address.
const RESERVED_NAMES: [&str; 2] = ["default", "unknown"];

/// `None` if there is a mistake.
pub(super) fn read_access(reader: &mut Reader<'_, '_>) -> Option<Access> {
    let before = reader.mistakes.count();
    let shared = read_secret(reader, "");
    let mut access = Access::new(shared.as_deref());
    let mut known: Vec<(&str, String)> = shared.into_iter().map(|one| ("the shared one", one)).collect();
    for (name, node) in read_tokens(reader) {
        let (of, before) = (format!("tokens: {name}: "), reader.mistakes.count());
        let Some(secret) = read_secret(&mut Reader { tree: node, mistakes: reader.mistakes }, &of) else {
            if reader.mistakes.count() == before {
                reader.mistakes.add(&node.origin, format!("{of}expected secret or secret_file"));
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
        mistakes.add(&node.origin, "tokens: expected a map of names, each with a secret or a secret_file");
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
            mistakes.add(&token.origin, format!("tokens: {name}: expected a map with secret or secret_file"));
        }
    }
    named
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

//! Who is let in: by the one secret that is shared, or by a token that has a name and a secret of its own. Secrets are
//! never shown, not even bad ones.

use bates_server::Access;

use super::Mistakes;
use super::address::text;
use super::tree::Node;

/// What a token may say of itself.
const TOKEN_KEYS: [&str; 2] = ["secret", "secret_file"];

/// Names that mean somebody else: a user without a name, and a client without an address.
const TAKEN: [&str; 2] = ["default", "unknown"];

/// The shared secret and the tokens; `None` if there is a mistake.
pub(super) fn access(tree: &Node, mistakes: &mut Mistakes) -> Option<Access> {
    let before = mistakes.count();
    let shared = secret(tree, "", mistakes);
    let mut access = Access::new(shared.as_deref());
    let mut known: Vec<(&str, String)> = shared.into_iter().map(|one| ("the shared secret", one)).collect();
    for (name, node) in tokens(tree, mistakes) {
        let (of, before) = (format!("tokens: {name}: "), mistakes.count());
        let Some(secret) = secret(node, &of, mistakes) else {
            if mistakes.count() == before {
                mistakes.add(&node.origin, format!("{of}it has neither secret nor secret_file"));
            }
            continue;
        };
        if let Some((other, _)) = known.iter().find(|(_, known)| *known == secret) {
            let problem = format!("{of}its secret is that of {other}: nobody could tell them apart");
            mistakes.add(&node.origin, problem);
        }
        access = access.with_token(name, &secret);
        known.push((name, secret));
    }
    (mistakes.count() == before).then_some(access)
}

/// The tokens that are described as they can be.
fn tokens<'t>(tree: &'t Node, mistakes: &mut Mistakes) -> Vec<(&'t str, &'t Node)> {
    let Some(node) = tree.get("tokens") else { return Vec::new() };
    let Some(entries) = node.entries() else {
        mistakes.add(&node.origin, "tokens: expected a map of names, each with a secret or a secret_file");
        return Vec::new();
    };
    let mut named = Vec::new();
    for (name, token) in entries {
        if name.parse::<bates_core::SeriesName>().is_err() || TAKEN.contains(&&**name) {
            let rule =
                "a lower-case letter, then up to 63 of a-z, 0-9, _ and -, and neither default nor unknown";
            mistakes.add(&token.origin, format!("tokens: {name:?} is no name for a token: {rule}"));
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

/// A secret as it stands, or in a file.
fn secret(node: &Node, of: &str, mistakes: &mut Mistakes) -> Option<String> {
    let (key, secret) = match (text(node, "secret", mistakes), text(node, "secret_file", mistakes)) {
        (Some(_), Some(_)) => {
            mistakes.at(node, "secret_file", format!("{of}secret and secret_file are both given"));
            return None;
        }
        (Some(secret), None) => ("secret", secret.to_owned()),
        (None, Some(file)) => ("secret_file", of_file(node, "secret_file", file, of, mistakes)?),
        (None, None) => return None,
    };
    let is_visible = secret.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let problem = if secret.is_empty() {
        format!("{of}{key} is empty: give it a secret, or leave it out")
    } else if !is_visible || secret.trim() != secret {
        format!("{of}{key} has spaces around it, or what is not visible ASCII: a header could not hold it")
    } else {
        return Some(secret);
    };
    mistakes.at(node, key, problem);
    None
}

/// A secret in a file that a key names.
pub(super) fn of_file(
    node: &Node,
    key: &str,
    file: &str,
    of: &str,
    mistakes: &mut Mistakes,
) -> Option<String> {
    match std::fs::read_to_string(file) {
        Ok(secret) => Some(secret.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => {
            mistakes.at(node, key, format!("{of}{key}: cannot read {file}: {error}"));
            None
        }
    }
}

//! Who is let in: by the one secret that is shared, or by a token that has a name and a secret of its own. Secrets are
//! never shown, not even bad ones.

use bates_server::Access;

use super::Mistake;
use super::address::{text, wrong};
use super::tree::Node;

/// What a token may say of itself.
const TOKEN_KEYS: [&str; 2] = ["secret", "secret_file"];

/// Names that mean somebody else: a user without a name, and a client without an address.
const TAKEN: [&str; 2] = ["default", "unknown"];

/// The shared secret and the tokens; `None` if there is a mistake.
pub(super) fn access(tree: &Node, mistakes: &mut Vec<Mistake>) -> Option<Access> {
    let before = mistakes.len();
    let shared = secret(tree, "", mistakes);
    let tokens = tokens(tree, mistakes);
    let mut access = Access::new(shared.as_deref());
    let mut known: Vec<(&str, &str)> = shared.iter().map(|secret| ("the shared secret", &**secret)).collect();
    for (name, node, secret) in &tokens {
        if let Some((other, _)) = known.iter().find(|(_, known)| known == secret) {
            let problem =
                format!("tokens: {name}: its secret is that of {other}: nobody could tell them apart");
            mistakes.push(Mistake { origin: node.origin.clone(), problem });
        }
        known.push((name, secret));
        access = access.with_token(name, secret);
    }
    (mistakes.len() == before).then_some(access)
}

/// Each token with its secret.
fn tokens<'t>(tree: &'t Node, mistakes: &mut Vec<Mistake>) -> Vec<(&'t str, &'t Node, String)> {
    let Some(node) = tree.get("tokens") else { return Vec::new() };
    let mut mistaken = |node: &Node, problem: String| {
        mistakes.push(Mistake { origin: node.origin.clone(), problem });
    };
    let Some(entries) = node.entries() else {
        mistaken(node, "tokens: expected a map of names, each with a secret or a secret_file".to_owned());
        return Vec::new();
    };
    let mut named = Vec::new();
    for (name, token) in entries {
        let is_name = name.parse::<bates_core::SeriesName>().is_ok() && !TAKEN.contains(&&**name);
        if !is_name {
            let rule =
                "a lower-case letter, then up to 63 of a-z, 0-9, _ and -, and neither default nor unknown";
            mistaken(token, format!("tokens: {name:?} is no name for a token: {rule}"));
        } else if let Some(keys) = token.entries()
            && keys.iter().all(|(key, _)| TOKEN_KEYS.contains(&&**key))
        {
            named.push((&**name, token));
        } else {
            mistaken(token, format!("tokens: {name}: expected a map with secret or secret_file"));
        }
    }
    let read = |(name, token)| {
        let of = format!("tokens: {name}: ");
        let before = mistakes.len();
        let secret = secret(token, &of, mistakes);
        if secret.is_none() && mistakes.len() == before {
            let problem = format!("{of}it has neither secret nor secret_file");
            mistakes.push(Mistake { origin: token.origin.clone(), problem });
        }
        secret.map(|secret| (name, token, secret))
    };
    named.into_iter().filter_map(read).collect()
}

/// A secret as it stands, or in a file.
fn secret(node: &Node, of: &str, mistakes: &mut Vec<Mistake>) -> Option<String> {
    let (key, secret) = match (text(node, "secret", mistakes), text(node, "secret_file", mistakes)) {
        (Some(_), Some(_)) => {
            wrong(node, "secret_file", format!("{of}secret and secret_file are both given"), mistakes);
            return None;
        }
        (Some(secret), None) => ("secret", secret.to_owned()),
        (None, Some(file)) => match std::fs::read_to_string(file) {
            Ok(secret) => ("secret_file", secret.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                let problem = format!("{of}secret_file: cannot read {file}: {error}");
                wrong(node, "secret_file", problem, mistakes);
                return None;
            }
        },
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
    wrong(node, key, problem, mistakes);
    None
}

//! Which store is meant, where the file, the environment and a flag can each name one. Two that differ are refused: a
//! server that takes another store than its operator expects issues the same numbers again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bates_postgres::Address;

use super::Mistakes;
use super::reader::Reader;
use super::tree::{Node, Origin, Value};

const KEY: &str = "store";
const VARIABLE: &str = "BATES_STORE";
const FLAG: &str = "--data";

const DEFAULT: &str = "bates-data";

/// A store, and who names it.
struct Named {
    by: String,
    origin: Origin,
    /// With an absolute path.
    store: String,
}

/// The folder from which relative paths go: that of the file, or the working directory without one.
pub(super) fn folder_of(file: Option<&Path>) -> Result<PathBuf> {
    let working = std::env::current_dir().context("cannot tell the working directory")?;
    Ok(match file.and_then(Path::parent) {
        Some(folder) => working.join(folder),
        None => working,
    })
}

/// Writes the store that is meant to the tree, with an absolute path. `in_file` is what the file says, before the
/// environment replaced it. Returns whether one is named.
pub(super) fn settle(
    tree: &mut Node,
    in_file: Option<&Node>,
    data: Option<&Path>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Result<bool> {
    let named = |by: &str, node: Option<&Node>| {
        let node = node?;
        let store = absolute(text(node)?, folder);
        Some(Named { by: by.to_owned(), origin: node.origin.clone(), store })
    };
    let in_environment =
        tree.get(KEY).filter(|node| matches!(&node.origin, Origin::Variable(name) if name == VARIABLE));
    let (file, variable) = (named("the file", in_file), named(VARIABLE, in_environment));
    let flag = data.map(of_flag).transpose()?;
    if let (Some(one), Some(other)) = (&variable, &file)
        && one.store != other.store
    {
        mistakes.add(&one.origin, contradiction(one, other));
    }
    if let (Some(one), Some(other)) = (&flag, variable.as_ref().or(file.as_ref())) {
        mistakes.add(&one.origin, contradiction(one, other));
    }
    let meant = flag.or(variable).or(file);
    let is_named = meant.is_some();
    let other = || tree.get(KEY).and_then(|node| Some((node.origin.clone(), absolute(text(node)?, folder))));
    let default = || (Origin::Flag("built in"), format!("sqlite:{}", folder.join(DEFAULT).display()));
    let (origin, store) = match meant {
        Some(Named { origin, store, .. }) => (origin, store),
        // The variables of an id-generator name one, too.
        None => other().unwrap_or_else(default),
    };
    // Other kinds of values are mistakes of their own.
    if tree.entries().is_some() && tree.get(KEY).is_none_or(|node| text(node).is_some() || is_empty(node)) {
        *tree.get_or_insert(&[KEY.to_owned()], &origin) = Node::text(&store, origin.clone());
    }
    Ok(is_named)
}

/// Outside the folder of the store: a copy of the folder must not bring its own mark.
pub(super) fn read_mark_file(tree: &Node, folder: &Path, mistakes: &mut Mistakes) -> Option<PathBuf> {
    const MARK_FILE: &str = "mark_file";
    let path = folder.join(Reader { tree, mistakes }.text(MARK_FILE)?);
    match tree.get(KEY).and_then(text).and_then(|store| store.strip_prefix("sqlite:")) {
        None => mistakes.add_at(tree, MARK_FILE, "mark_file is only for a store in a folder"),
        Some(store) if path.starts_with(store) => {
            let problem =
                format!("mark_file must be outside {store}: a copy of the folder would bring its own");
            mistakes.add_at(tree, MARK_FILE, problem);
        }
        Some(_) => {}
    }
    Some(path)
}

fn contradiction(one: &Named, other: &Named) -> String {
    let (first, second) = (shown(&one.store), shown(&other.store));
    format!(
        "{} names the store {first}, and {} names {second}: remove one of them, so that no other store is used by \
         mistake",
        one.by, other.by
    )
}

fn of_flag(data: &Path) -> Result<Named> {
    let path = folder_of(None)?.join(data);
    let path = path.to_str().context("--data must be UTF-8")?;
    Ok(Named { by: FLAG.to_owned(), origin: Origin::Flag(FLAG), store: format!("sqlite:{path}") })
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar(serde_json::Value::String(text)) => Some(text),
        _ => None,
    }
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(serde_json::Value::Null))
}

/// The same address, with an absolute path if it is a folder.
fn absolute(store: &str, folder: &Path) -> String {
    match store.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => format!("sqlite:{}", folder.join(path).display()),
        _ => store.to_owned(),
    }
}

/// Without a password.
fn shown(store: &str) -> String {
    if store.starts_with("sqlite:") {
        return store.to_owned();
    }
    Address::parse(store).map_or_else(|_| "(not an address)".to_owned(), |address| address.to_string())
}

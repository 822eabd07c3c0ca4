//! Rule: the pages that guide a reader through the code are true: every path in them exists, and ARCHITECTURE.md names
//! every crate. Paths may begin with the name of a crate; below a heading that names a crate they begin in its sources,
//! and after another path of the same line in the folder of that path. Must never follow a path out of the repository.

use std::collections::BTreeSet;

use super::finding::Finding;

/// The prefixes of paths in this repository; anything else in backticks is code.
const FOLDERS: [&str; 7] = ["crates/", "docs/", "xtask/", ".ci/", "fuzz/", "deploy/", "examples/"];

pub(super) fn check(
    map: &str,
    text: &str,
    crates: &BTreeSet<&str>,
    exists: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let spans = code_spans(text);
    let is_named = |name: &str| {
        let folder = format!("crates/{name}");
        spans.iter().any(|(_, span)| {
            *span == name || paths_in(span).any(|path| path.strip_prefix(&folder).is_some_and(ends_name))
        })
    };
    let unnamed = crates
        .iter()
        .filter(|name| !is_named(name))
        .map(|name| Finding::new(map, 1, format!("does not name `crates/{name}`: add it to the code map")));
    unnamed.chain(check_paths(map, text, crates, exists)).collect()
}

pub(super) fn check_paths(
    page: &str,
    text: &str,
    crates: &BTreeSet<&str>,
    exists: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let spans = code_spans(text);
    let full = spans.iter().flat_map(|(line, span)| paths_in(span).map(move |path| (*line, path.to_owned())));
    let paths = full.chain(short_paths(text)).chain(crate_paths(&spans, crates));
    let missing = paths.filter(|(_, path)| !exists(path.trim_end_matches('/')));
    missing.map(|(line, path)| Finding::new(page, line, format!("`{path}` does not exist"))).collect()
}

/// The paths that begin with the name of a crate, and those that follow one of them in its line.
fn crate_paths(spans: &[(usize, &str)], crates: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    let mut folder: Option<(usize, String)> = None;
    for (line, span) in spans.iter().filter(|(_, span)| !span.contains([' ', '*', '{', '<', '…'])) {
        if span.split_once('/').is_some_and(|(name, _)| crates.contains(name)) {
            let path = format!("crates/{}", span.trim_end_matches('/'));
            let parent =
                if span.ends_with('/') { Some(&*path) } else { path.rsplit_once('/').map(|(to, _)| to) };
            folder = parent.map(|parent| (*line, parent.to_owned()));
            paths.push((*line, path));
        } else if let Some((_, folder)) = folder.as_ref().filter(|(of, _)| of == line)
            && is_short(span)
        {
            paths.push((*line, format!("{folder}/{span}")));
        }
    }
    paths
}

fn is_short(span: &str) -> bool {
    let is_path = span.ends_with('/') || matches!(span.rsplit_once('.'), Some((_, "rs" | "sql")));
    is_path && !span.contains(' ') && paths_in(span).next().is_none()
}

/// The short paths in sections about a crate, as paths of the repository.
fn short_paths(text: &str) -> Vec<(usize, String)> {
    let headings = text.lines().zip(1..).filter(|(line, _)| line.starts_with('#'));
    let sections: Vec<(usize, Option<&str>)> = headings
        .map(|(line, number)| (number, line.trim_start_matches(['#', ' ']).strip_prefix('`')))
        .map(|(number, name)| (number, name.and_then(|name| name.split('`').next())))
        .collect();
    let crate_at = |line: usize| sections.iter().rev().find(|(start, _)| *start <= line)?.1;
    let spans = code_spans(text).into_iter().filter(|(_, span)| is_short(span));
    spans.filter_map(|(line, span)| Some((line, format!("crates/{}/src/{span}", crate_at(line)?)))).collect()
}

fn ends_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

/// The texts in single backticks, with their lines; skips fenced blocks.
fn code_spans(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut spans = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            spans.extend(line.split('`').skip(1).step_by(2).map(|span| (number, span)));
        }
    }
    spans
}

/// The paths in a span, without an item or a line number; skips paths with placeholders.
fn paths_in(span: &str) -> impl Iterator<Item = &str> {
    let paths = span.split_whitespace().filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
    let paths = paths.filter(|path| !path.contains(['*', '{', '<', '…', '$']) && !path.contains(".."));
    paths.filter_map(|path| path.split([':', '#']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Map\n\n| `crates/bates-pattern` | pure, see `crates/bates-pattern/src/lib.rs::render` |\n\
        `bates` is the binary; run `.ci/run`, not `crates/*/src` or `a/b`.\n```\ncrates/drawn\n```\n";

    fn messages(text: &str, crates: &[&str], exists: impl Fn(&str) -> bool) -> Vec<String> {
        let crates = crates.iter().copied().collect();
        check("ARCHITECTURE.md", text, &crates, exists).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_correct_map_passes() {
        let existing = ["crates/bates-pattern", "crates/bates-pattern/src/lib.rs", ".ci/run"];
        let exists = |path: &str| existing.contains(&path);
        assert_eq!(messages(TEXT, &["bates", "bates-pattern"], exists), [""; 0]);
    }

    #[test]
    fn a_missing_path_is_found_on_its_line() {
        let found = messages(TEXT, &[], |path| path != ".ci/run");
        assert_eq!(found, ["ARCHITECTURE.md:4: `.ci/run` does not exist"]);
    }

    #[test]
    fn a_short_path_begins_in_the_crate_of_its_heading() {
        let text = "### `bates-core`: rules\n`ledger/` and `gone.rs`\n## Other\n`elsewhere.rs`\n";
        let found = messages(text, &[], |path| path == "crates/bates-core/src/ledger");
        assert_eq!(found, ["ARCHITECTURE.md:2: `crates/bates-core/src/gone.rs` does not exist"]);
    }

    #[test]
    fn a_path_begins_with_a_crate_or_in_the_folder_of_the_path_before_it() {
        let text =
            "1. `bates-core/src/a.rs`, then `b.rs`\n2. `c.rs` of no crate, `bates-core/src/d/`, `e.rs`\n";
        let found = messages(text, &["bates-core"], |path| path.ends_with("a.rs"));
        let missing =
            |line, path| format!("ARCHITECTURE.md:{line}: `crates/bates-core/src/{path}` does not exist");
        assert_eq!(found[1..], [missing(1, "b.rs"), missing(2, "d"), missing(2, "d/e.rs")]);
    }

    #[test]
    fn a_missing_crate_is_found_even_if_another_name_begins_with_its_own() {
        let text = "`crates/bates-pattern`";
        let found = messages(text, &["bates", "bates-pattern"], |_| true);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("`crates/bates`"));
    }

    #[test]
    fn a_missing_map_names_no_crate() {
        assert_eq!(messages("", &["bates", "bates-pattern"], |_| true).len(), 2);
    }
}

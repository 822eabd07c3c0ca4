//! Rule: no Rust file, folder or module has a vague name. Must never judge the names of types and functions, which
//! is for reviewers, or of files whose names other tools prescribe.

use super::{finding::Finding, tree::Source};

const NAMES: [&str; 7] = ["manager", "managers", "helper", "helpers", "util", "utils", "common"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let in_paths = sources.iter().filter_map(|source| {
        let name = source.path.split('/').find_map(vague_word)?;
        Some(finding(&source.path, 1, name))
    });
    in_paths.chain(sources.iter().flat_map(check_modules)).collect()
}

/// Modules with a body; a module in its own file is found by its path.
fn check_modules(source: &Source) -> impl Iterator<Item = Finding> {
    source.text.lines().zip(1..).filter_map(|(text, line)| {
        let (before, after) = text.split_once("mod ")?;
        let declares = before.trim().is_empty() || before.trim_start().starts_with("pub");
        let name = vague_word(after.strip_suffix('{')?.trim())?;
        declares.then(|| finding(&source.path, line, name))
    })
}

/// Any word of the name counts: `pool_manager.rs` is no better than `manager.rs`.
fn vague_word(name: &str) -> Option<&'static str> {
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| NAMES.into_iter().find(|vague| word.eq_ignore_ascii_case(vague)))
}

fn finding(path: &str, line: usize, name: &str) -> Finding {
    Finding::new(path, line, format!("`{name}` is too vague: name it after the one thing it owns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vague_file_or_folder_is_found() {
        let planted = ["crates/a/src/utils.rs", "crates/a/tests/common/mod.rs", "a/pool_manager.rs"];
        assert_eq!(check(&planted.map(|path| Source::planted(path, ""))).len(), 3);
    }

    #[test]
    fn a_vague_module_with_a_body_is_found() {
        let planted = [Source::planted("a.rs", "//! Owns a.\n    pub(crate) mod helpers {\n    }\n")];
        let findings = check(&planted);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }

    #[test]
    fn plain_names_pass() {
        let text = "//! The common case needs no helper mod utils {\nmod lease {\n}\nmod commonly {}\n";
        assert_eq!(check(&[Source::planted("crates/a/src/lease.rs", text)]), []);
    }
}

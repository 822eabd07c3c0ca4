//! Rule: every Rust file opens with `//!`, which says what it owns and what it must never do. Must never judge the
//! text itself; that is for reviewers.

use super::{finding::Finding, tree::Source};

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let message = "open with `//!`: what this file owns and what it must never do";
    let without = sources.iter().filter(|source| !source.text.starts_with("//!"));
    without.map(|source| Finding::new(&source.path, 1, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_opens_with_code_is_found() {
        let findings = check(&[Source::planted("a.rs", "use std::io;\n//! Late.\n")]);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("a.rs", 1));
    }

    #[test]
    fn an_empty_file_is_found() {
        assert_eq!(check(&[Source::planted("a.rs", "")]).len(), 1);
    }

    #[test]
    fn a_file_that_opens_with_its_purpose_passes() {
        assert_eq!(check(&[Source::planted("a.rs", "//! Owns a.\n\nuse std::io;\n")]), []);
    }
}

//! One thing found, in the form that editors and CI can jump to. Must never be printed before all rules ran:
//! whoever fixes one finding wants to see the others.

use std::fmt;

/// Sorted by place, so that the list reads like a walk through the tree.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_place_and_message() {
        let finding = Finding::new("crates/bates/src/main.rs", 3, "too long");
        assert_eq!(finding.to_string(), "crates/bates/src/main.rs:3: too long");
    }
}

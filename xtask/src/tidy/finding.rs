//! A violation of a rule, in a form that editors and CI can jump to. Printed only after all rules ran, so that a
//! reader sees all of them.

use std::fmt;

/// Ordered by path and line.
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
    fn a_finding_shows_path_line_and_message() {
        let finding = Finding::new("crates/bates/src/main.rs", 3, "too long");
        assert_eq!(finding.to_string(), "crates/bates/src/main.rs:3: too long");
    }
}

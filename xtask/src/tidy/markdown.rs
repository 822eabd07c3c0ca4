//! Rule: Markdown is easy to read in a terminal: a heading first, short lines, a short README. Must never judge
//! tables, code, links and headings, which cannot be wrapped.

use super::{finding::Finding, tree::Source};

/// Prose is wrapped near 100 columns; ten more allow a long word.
const COLUMNS_MAX: usize = 110;
const README_LINES_MAX: usize = 150;

pub(super) fn check(documents: &[Source]) -> Vec<Finding> {
    documents.iter().flat_map(check_one).collect()
}

fn check_one(document: &Source) -> Vec<Finding> {
    let Source { path, text } = document;
    let mut findings = Vec::new();
    if !text.starts_with("# ") {
        findings.push(Finding::new(path, 1, "open with a heading that says what the page is for"));
    }
    let lines = text.lines().count();
    if path == "README.md" && lines > README_LINES_MAX {
        let message = format!("has {lines} lines, more than {README_LINES_MAX}: move details to docs/");
        findings.push(Finding::new(path, README_LINES_MAX + 1, message));
    }
    let mut is_code = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && is_prose(line) && line.chars().count() > COLUMNS_MAX {
            let columns = line.chars().count();
            let message = format!("has {columns} columns, more than {COLUMNS_MAX}: wrap it near 100");
            findings.push(Finding::new(path, number, message));
        }
    }
    findings
}

fn is_prose(line: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with('|') && !line.starts_with('#') && !line.contains("](") && !line.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&[Source::planted(path, text)]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_long_lines_of_prose_are_found() {
        let long = "word ".repeat(30);
        let text = format!("# A\n\n{long}\n| {long} |\n```\n{long}\n```\n[{long}](b.md)\n");
        assert_eq!(messages("a.md", &text), ["a.md:3: has 150 columns, more than 110: wrap it near 100"]);
    }

    #[test]
    fn a_page_without_a_heading_is_found() {
        assert_eq!(
            messages("a.md", "Text.\n"),
            ["a.md:1: open with a heading that says what the page is for"]
        );
    }

    #[test]
    fn only_the_readme_has_a_line_limit() {
        let text = format!("# A\n{}", "\n".repeat(200));
        assert_eq!(messages("docs/a.md", &text), [""; 0]);
        assert_eq!(
            messages("README.md", &text),
            ["README.md:151: has 201 lines, more than 150: move details to docs/"]
        );
    }
}

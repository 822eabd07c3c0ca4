//! Rule: the target of a link in a Markdown file exists. Checks only links into this repository; must never use the
//! network.

use super::finding::Finding;
use super::tree::Source;

pub(super) fn check(documents: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let dead = documents.iter().flat_map(|document| {
        let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let links = document
            .text
            .lines()
            .zip(1..)
            .flat_map(|(line, number)| targets(line).map(move |to| (number, to)));
        links.filter(|(_, target)| !exists(&join(folder, target))).map(|(number, target)| {
            Finding::new(&document.path, number, format!("the link target `{target}` does not exist"))
        })
    });
    dead.collect()
}

/// The text between `](` and `)`, without a fragment.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.map(|target| target.split('#').next().unwrap_or_default());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// Resolves `..` by text, as a browser does.
fn join(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "" | "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let existing = ["README.md", "docs/patterns.md", "docs/adr"];
        check(&[Source::planted(path, text)], |path| existing.contains(&path))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_dead_link_is_found_on_its_line() {
        let found = messages("docs/patterns.md", "fine\nsee [a](gone.md) and [b](../README.md)");
        assert_eq!(found, ["docs/patterns.md:2: the link target `gone.md` does not exist"]);
    }

    #[test]
    fn links_to_files_folders_headings_and_websites_pass() {
        assert!(
            messages("README.md", "[a](docs/patterns.md#check) [b](docs/adr/) [c](#here) [d](https://x.y/z)")
                .is_empty()
        );
    }
}

//! The mistakes of a configuration, each with its place: all are reported at once.

use std::path::Path;

use super::tree::{Node, Origin};
use crate::output;

#[derive(Debug, Default)]
pub(super) struct Mistakes(Vec<(Origin, String)>);

impl Mistakes {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, origin: &Origin, problem: impl Into<String>) {
        self.0.push((origin.clone(), problem.into()));
    }

    pub(super) fn add_at(&mut self, tree: &Node, key: &str, problem: impl Into<String>) {
        self.add(tree.origin_of([key]), problem);
    }

    /// Sorted by line.
    pub(super) fn report(mut self, file: &Path) -> String {
        self.0.sort_by_key(|(origin, _)| if let Origin::Line(line) = origin { *line } else { u64::MAX });
        let lines = self.0.iter().map(|(origin, problem)| match origin {
            Origin::Line(line) => format!("\n  {}, line {line}: {problem}", file.display()),
            Origin::Variable(name) => format!("\n  {name}: {problem}"),
            Origin::Flag(flag) => format!("\n  {flag}: {problem}"),
        });
        let count = output::count_of(self.0.len() as u64, "mistake");
        format!("{count} in the configuration{}", lines.collect::<String>())
    }
}

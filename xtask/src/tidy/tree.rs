//! The files that the rules check: those that git tracks or would track. Must never read ignored files, because they
//! differ from machine to machine.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

/// A text file, its path relative to the root.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

pub(super) struct Tree {
    /// Every file, Rust or not.
    paths: Vec<String>,
    /// The Rust files.
    pub(super) sources: Vec<Source>,
    /// The Markdown files.
    pub(super) documents: Vec<Source>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let paths = list(root)?;
        let read_all = |extension: &str| {
            let matches =
                |path: &&String| Path::new(path).extension().is_some_and(|found| found == extension);
            paths.iter().filter(matches).map(|path| read(root, path)).collect::<Result<_>>()
        };
        let (sources, documents) = (read_all("rs")?, read_all("md")?);
        Ok(Self { paths, sources, documents })
    }

    /// The names of the folders directly under `crates/`.
    pub(super) fn crates(&self) -> BTreeSet<&str> {
        let below = self.paths.iter().filter_map(|path| path.strip_prefix("crates/"));
        below.filter_map(|path| Some(path.split_once('/')?.0)).collect()
    }
}

fn list(root: &Path) -> Result<Vec<String>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let output = Command::new("git").args(arguments).current_dir(root).output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    let paths: BTreeSet<&str> = text.split_terminator('\0').collect();
    // Git also lists a file whose deletion is not staged.
    Ok(paths.into_iter().filter(|path| root.join(path).is_file()).map(str::to_owned).collect())
}

fn read(root: &Path, path: &str) -> Result<Source> {
    let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
    Ok(Source { path: path.to_owned(), text })
}

#[cfg(test)]
impl Source {
    /// A planted file for the tests of the rules.
    pub(super) fn planted(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_lists_its_own_sources() {
        let tree = Tree::read(crate::root()).unwrap();
        assert!(tree.sources.iter().any(|source| source.path == "xtask/src/tidy/tree.rs"));
        assert!(tree.paths.iter().all(|path| !path.starts_with("target/")));
        assert!(tree.crates().contains("bates-testkit"));
    }
}

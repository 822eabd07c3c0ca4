//! The mark file: the last commit whose answers may have been sent, kept outside the folder of the store, where an operator
//! gives a place. A whole folder that is put back from a copy has an older commit, and is refused.
//!
//! Invariant: it is never ahead of the database. A commit is written here only once it is on disk.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use uuid::Uuid;

use crate::error::OpenError;
use crate::folder::{create_private, io_error};

#[derive(Debug)]
pub(crate) struct MarkFile {
    file: File,
    identity: Uuid,
    commits: u64,
}

impl MarkFile {
    pub(crate) fn is_at(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
    }

    /// Opens the mark of a store, or makes a missing one.
    pub(crate) fn open(path: &Path, identity: Uuid) -> Result<Self, OpenError> {
        let failed = |doing| io_error(doing, path);
        let mut file = create_private(path).map_err(failed("open the mark file"))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed("read the mark file"))?;
        let commits = match parse(&text) {
            None if text.is_empty() => 0,
            None => return Err(OpenError::MarkUnreadable(path.to_owned())),
            Some((found, _)) if found != identity => {
                return Err(OpenError::MarkOfAnother { path: path.to_owned(), found, identity });
            }
            Some((_, commits)) => commits,
        };
        Ok(Self { file, identity, commits })
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    /// Not synced: after a power cut it may be older than the log, never newer.
    pub(crate) fn record(&mut self, commits: u64) -> io::Result<()> {
        self.file.write_all_at(render(self.identity, commits).as_bytes(), 0)?;
        self.commits = commits;
        Ok(())
    }
}

/// A line that fits a sector of a disk, which is written as a whole.
fn render(identity: Uuid, commits: u64) -> String {
    format!("bates mark of store {identity} commit {commits:020}\n")
}

/// Accepts only a line that [`render`] would write.
fn parse(text: &str) -> Option<(Uuid, u64)> {
    let mut words = text.split_whitespace().skip(4);
    let (identity, commits) = (words.next()?.parse().ok()?, words.nth(1)?.parse().ok()?);
    (render(identity, commits) == text).then_some((identity, commits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_commit_is_read_back_and_no_other_text_is_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let (path, identity) = (folder.path().join("mark"), Uuid::from_u128(7));
        for commits in [0, 3, 12_000, u64::MAX] {
            let mut mark = MarkFile::open(&path, identity).unwrap();
            mark.record(commits).unwrap();
            assert_eq!(MarkFile::open(&path, identity).unwrap().commits(), commits);
        }
        let other = MarkFile::open(&path, Uuid::from_u128(8));
        assert!(matches!(other, Err(OpenError::MarkOfAnother { .. })), "{other:?}");
        for text in ["garbage", "bates mark of store x commit 1\n", &render(identity, 5)[1..]] {
            std::fs::write(&path, text).unwrap();
            let unreadable = MarkFile::open(&path, identity);
            assert!(matches!(unreadable, Err(OpenError::MarkUnreadable(_))), "{text}: {unreadable:?}");
        }
    }
}

//! How files outlast a crash. Owns the choice: one call for all that was written, or one for each file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

/// Returns once everything that was written below the root is on disk.
///
/// One call for the file system costs what its unwritten data costs, whoever wrote it; one for each of a thousand files
/// costs a thousand commits of the journal. `files` are what was written, for file systems that cannot do the former.
///
/// Invariant: the root was opened before anything was written. Linux tells of a write that failed only to those who
/// had something open by then.
pub(super) fn all<'a>(
    root: &File,
    root_path: &Path,
    files: impl Iterator<Item = &'a Path>,
) -> io::Result<()> {
    match whole(root) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => each(root_path, files),
        done => done,
    }
}

#[cfg(target_os = "linux")]
fn whole(root: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(root)?)
}

#[cfg(not(target_os = "linux"))]
fn whole(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Files, and every folder that leads to them: a name is on disk when its folder is.
fn each<'a>(root: &Path, files: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let mut folders = BTreeSet::new();
    for file in files {
        File::open(file)?.sync_all()?;
        folders.extend(file.ancestors().skip(1).take_while(|folder| folder.starts_with(root)));
    }
    folders.into_iter().try_for_each(|folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_work_on_this_file_system() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let file = folder.path().join("a/b/c");
        std::fs::write(&file, "x").unwrap();
        let root = File::open(folder.path()).unwrap();
        all(&root, folder.path(), [file.as_path()].into_iter()).unwrap();
        each(folder.path(), [file.as_path()].into_iter()).unwrap();
        assert!(each(folder.path(), [Path::new("/nowhere")].into_iter()).is_err());
    }
}

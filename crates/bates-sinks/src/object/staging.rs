//! The folder in which files are written before they are renamed: `.staging/ID` below the root, one for each process. Owns
//! syncing, and removing leftovers of a crash. Must never touch the files of a live process.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

/// The name of a series never begins with a dot.
const NAME: &str = ".staging";

pub(super) struct Staging {
    path: PathBuf,
    /// Held while the folder is in use; the system unlocks it when the process ends.
    _lock: File,
}

impl Staging {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let all = root.join(NAME);
        fs::create_dir_all(&all)?;
        // Held until our folder is locked, so that no other process removes it as a leftover.
        let opening = File::open(&all)?;
        flock(&opening, FlockOperation::LockExclusive)?;
        for entry in fs::read_dir(&all)? {
            remove_leftover(&entry?.path())?;
        }
        let path = all.join(Uuid::now_v7().to_string());
        fs::create_dir(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // If it stays, the next process that opens the root removes it.
        drop(fs::remove_dir_all(&self.path));
    }
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    let lock = File::open(path)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if path.is_dir() => fs::remove_dir_all(path),
        Err(error) if error != rustix::io::Errno::WOULDBLOCK => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns once everything that was written below the root is on disk. One sync of the file system is much cheaper than
/// one for each of a thousand files; where that is unsupported, each of `files` is synced.
///
/// Invariant: the root was opened before anything was written. Linux reports a failed write only to file handles that
/// were open by then.
pub(super) fn sync_all<'a>(root: &File, dir: &Path, files: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    match sync_whole(root) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => sync_each(dir, files),
        done => done,
    }
}

#[cfg(target_os = "linux")]
fn sync_whole(root: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(root)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_whole(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Syncs files, and every folder above them: a name is on disk when its folder is.
fn sync_each<'a>(root: &Path, files: impl Iterator<Item = &'a Path>) -> io::Result<()> {
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
    fn opening_removes_leftovers_and_keeps_folders_in_use() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join(NAME).join("left");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half"), "{").unwrap();
        let one = Staging::open(root.path()).unwrap();
        assert!(!left.exists());
        fs::write(one.path("file"), "{}").unwrap();
        let other = Staging::open(root.path()).unwrap();
        assert!(one.path("file").exists());
        let gone = other.path.clone();
        drop(other);
        assert!(!gone.exists() && one.path("file").exists());
    }

    #[test]
    fn both_ways_to_sync_work_on_this_file_system() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let file = folder.path().join("a/b/c");
        fs::write(&file, "x").unwrap();
        let root = File::open(folder.path()).unwrap();
        sync_all(&root, folder.path(), [file.as_path()].into_iter()).unwrap();
        sync_each(folder.path(), [file.as_path()].into_iter()).unwrap();
        assert!(sync_each(folder.path(), [Path::new("/nowhere")].into_iter()).is_err());
    }
}

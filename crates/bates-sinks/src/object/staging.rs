//! Where files are written before they have their names: `.staging/ID` below the root, one for each process. Owns that
//! what a crash left there goes away. Must never touch what a living process is writing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

/// No series begins with a dot.
const NAME: &str = ".staging";

/// A folder of this process alone, gone with it.
pub(super) struct Staging {
    path: PathBuf,
    /// Locked as long as it is in use; the system unlocks it however the process ends.
    _lock: File,
}

impl Staging {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let all = root.join(NAME);
        fs::create_dir_all(&all)?;
        // Held until this one is locked: nobody takes it for one that was left.
        let opening = File::open(&all)?;
        flock(&opening, FlockOperation::LockExclusive)?;
        for entry in fs::read_dir(&all)? {
            remove_left(&entry?.path())?;
        }
        let path = all.join(Uuid::now_v7().to_string());
        fs::create_dir(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    /// A path for something that is written. No two calls in a process have the same name.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // If it stays, whoever opens the folder next removes it.
        drop(fs::remove_dir_all(&self.path));
    }
}

fn remove_left(path: &Path) -> io::Result<()> {
    let lock = File::open(path)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if path.is_dir() => fs::remove_dir_all(path),
        Err(error) if error != rustix::io::Errno::WOULDBLOCK => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_goes_and_what_is_in_use_stays() {
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
}

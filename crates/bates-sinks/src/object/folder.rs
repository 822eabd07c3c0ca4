//! A folder: a file for each document. Ensures that a file appears completely or not at all, and that a batch is on disk
//! before any of it counts as delivered.
//!
//! Does not use `object_store`, whose local store syncs each file or none: see `docs/adr/0001-dependencies.md`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bates_core::{DeliverFuture, Delivery, DeliveryError, Sink};

use super::staging::{Staging, sync_all};
use super::{FIELD, path};
use crate::description::SinkError;
use crate::payload;

/// A batch of any size costs two syncs. Larger ones need more memory and save little.
const BATCH_MAX: usize = 5_000;
const THREADS_MAX: usize = 8;
/// Fewer documents are not worth another thread.
const PER_THREAD_MIN: usize = 32;

/// Several processes may share the folder.
pub(super) struct Folder(Arc<Inner>);

struct Inner {
    root: PathBuf,
    /// Open as long as the sink is, for `sync_all`.
    handle: File,
    staging: Staging,
    written: AtomicU64,
}

struct Staged {
    written: PathBuf,
    target: PathBuf,
}

type Answer<T> = Result<T, DeliveryError>;

impl Folder {
    /// The folder must exist: a missing one may be a disk that is not mounted.
    pub(super) fn open(root: &Path) -> Result<Self, SinkError> {
        let wrong = |error: io::Error| SinkError::new(FIELD, format!("{}: {error}", root.display()));
        if !fs::metadata(root).map_err(wrong)?.is_dir() {
            return Err(SinkError::new(FIELD, format!("{} is not a folder", root.display())));
        }
        let root = fs::canonicalize(root).map_err(wrong)?;
        let handle = File::open(&root).map_err(wrong)?;
        let staging = Staging::open(&root).map_err(wrong)?;
        Ok(Self(Arc::new(Inner { root, handle, staging, written: AtomicU64::new(0) })))
    }
}

impl Sink for Folder {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        Box::pin(async move {
            let (inner, batch) = (Arc::clone(&self.0), deliveries.to_vec());
            let delivered = tokio::task::spawn_blocking(move || inner.deliver(&batch)).await;
            delivered.unwrap_or_else(|error| {
                vec![Err(DeliveryError::Unavailable(error.to_string().into())); deliveries.len()]
            })
        })
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn describe(&self) -> String {
        format!("folder {}", self.0.root.display())
    }
}

impl Inner {
    /// Contents reach the disk before names do: a crash between the two leaves no name with half a file.
    fn deliver(&self, deliveries: &[Delivery]) -> Vec<Answer<()>> {
        let staged = in_threads(deliveries, |part| self.stage(part));
        if let Err(undelivered) = self.sync(staged.iter().flatten().map(|staged| &*staged.written)) {
            staged.iter().flatten().for_each(|staged| discard(&staged.written));
            return vec![Err(undelivered); deliveries.len()];
        }
        let named = in_threads(&staged, |part| part.iter().map(name).collect());
        let there = staged.iter().zip(&named).filter(|(_, named)| named.is_ok());
        let there = there.filter_map(|(staged, _)| staged.as_ref().ok());
        match self.sync(there.map(|staged| &*staged.target)) {
            Ok(()) => named,
            // The files have their names, and may keep them after a crash.
            Err(undelivered) => {
                vec![Err(DeliveryError::Unanswered(undelivered.to_string().into())); deliveries.len()]
            }
        }
    }

    fn stage(&self, deliveries: &[Delivery]) -> Vec<Answer<Staged>> {
        let mut made = HashSet::new();
        deliveries.iter().map(|delivery| self.stage_one(delivery, &mut made)).collect()
    }

    fn stage_one(&self, delivery: &Delivery, made: &mut HashSet<String>) -> Answer<Staged> {
        let content = payload::data(delivery)?;
        let written = self.staging.path(&self.written.fetch_add(1, Ordering::Relaxed).to_string());
        let folder = path::folder(delivery);
        let target_folder = self.root.join(&folder);
        // Folders come second: if the root is missing, nothing is created in its place.
        let staged = fs::write(&written, content)
            .and_then(|()| if made.contains(&folder) { Ok(()) } else { fs::create_dir_all(&target_folder) });
        match staged {
            Ok(()) => {
                made.insert(folder);
                Ok(Staged { written, target: target_folder.join(path::file(delivery)) })
            }
            Err(error) => {
                discard(&written);
                Err(undelivered(&error))
            }
        }
    }

    fn sync<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Answer<()> {
        sync_all(&self.handle, &self.root, files).map_err(|error| undelivered(&error))
    }
}

fn name(staged: &Answer<Staged>) -> Answer<()> {
    let Staged { written, target } = staged.as_ref().map_err(Clone::clone)?;
    fs::rename(written, target).map_err(|error| {
        discard(written);
        undelivered(&error)
    })
}

/// The next start removes files that cannot be removed now.
fn discard(written: &Path) {
    drop(fs::remove_file(written));
}

/// A full or missing disk fails every document; an occupied path fails only its own.
fn undelivered(error: &io::Error) -> DeliveryError {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, IsADirectory, NotADirectory};
    let reason = error.to_string().into();
    match error.kind() {
        AlreadyExists | InvalidFilename | IsADirectory | NotADirectory => DeliveryError::Refused(reason),
        _ => DeliveryError::Unavailable(reason),
    }
}

/// Works on parts of `whole` in parallel; answers in its order.
fn in_threads<T: Sync, R: Send>(whole: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let size = whole.len().div_ceil(threads).max(PER_THREAD_MIN);
    thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> = whole.chunks(size).map(|part| scope.spawn(move || work(part))).collect();
        let done = parts.into_iter().flat_map(|part| part.join().expect("writing files does not panic"));
        done.collect()
    })
}

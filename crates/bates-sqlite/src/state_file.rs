//! The state file, `bates.state`: the phase of the store, and the last commit whose answers may have been sent.
//! Writes alternate between two slots, so that a torn write leaves the one before it.
//!
//! Invariant: it is never ahead of the database. A commit is written here only once it is on disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::folder::create_private;
use crate::mark_file::MarkFile;

/// The distance between slots: a torn or unreadable disk page damages only one of them.
const SLOT_BYTES: usize = 4096;
const SLOTS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No number was issued yet; the database may be missing.
    New,
    /// A move is creating the store. The database may be missing, and only the move may create it.
    Arriving,
    /// A process has the store open, or crashed. The database needs its log.
    Open,
    /// Like `Open`, during a checkpoint: without its log, the database mixes old and new pages.
    Checkpoint,
    /// The database is complete without its log.
    Closed,
    /// Commits are missing. Nothing is issued until the loss is accepted.
    Stopped,
}

impl Phase {
    const ALL: [Self; 6] =
        [Self::New, Self::Arriving, Self::Open, Self::Checkpoint, Self::Closed, Self::Stopped];

    const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Arriving => "arriving",
            Self::Open => "open",
            Self::Checkpoint => "checkpoint",
            Self::Closed => "closed",
            Self::Stopped => "stopped",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) phase: Phase,
    /// The last commit whose answers may have been sent.
    pub(crate) commits: u64,
}

#[derive(Debug)]
pub(crate) enum StateFileRead {
    Missing,
    Unreadable,
    Readable(StateFile),
}

#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    written: Mutex<Written>,
    /// Outside the folder, where an operator gives a place.
    mark: Option<Mutex<MarkFile>>,
    /// A copy of the phase, so that callers need not wait for a write.
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct Written {
    file: File,
    content: Content,
    /// Counts writes: the newer slot has the higher serial.
    serial: u64,
}

impl StateFile {
    pub(crate) fn find(path: &Path) -> io::Result<StateFileRead> {
        let mut file = match File::options().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StateFileRead::Missing),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(match newest(&bytes) {
            Some((serial, content)) => {
                StateFileRead::Readable(Self::new(path, Written { file, content, serial }))
            }
            None => StateFileRead::Unreadable,
        })
    }

    /// Creates or replaces the file atomically. The caller syncs the folder afterwards.
    pub(crate) fn create(path: &Path, content: Content) -> io::Result<Self> {
        let next = path.with_extension("state-new");
        let file = create_private(&next)?;
        // The full length is written now, so that later writes need no disk space.
        file.write_all_at(&[0; SLOTS * SLOT_BYTES], 0)?;
        let mut written = Written { file, content, serial: 0 };
        for _ in 0..SLOTS {
            written.put(content)?;
        }
        written.file.sync_all()?;
        fs::rename(next, path)?;
        Ok(Self::new(path, written))
    }

    fn new(path: &Path, written: Written) -> Self {
        let is_stopped = AtomicBool::new(written.content.phase == Phase::Stopped);
        Self { path: path.to_owned(), written: Mutex::new(written), mark: None, is_stopped }
    }

    pub(crate) fn set_mark(&mut self, mark: MarkFile) {
        self.mark = Some(Mutex::new(mark));
    }

    fn mark(&self, commits: u64) -> io::Result<()> {
        self.mark.as_ref().map_or(Ok(()), |mark| mark.lock().record(commits))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub(crate) fn content(&self) -> Content {
        self.written.lock().content
    }

    /// Called before the answers of a commit are sent. Not synced: after a power cut the file may be older than the log,
    /// never newer.
    pub(crate) fn record_commit(&self, commits: u64) -> io::Result<()> {
        let mut written = self.written.lock();
        let Content { phase, .. } = written.content;
        if phase == Phase::Stopped {
            return Ok(());
        }
        written.put(Content { phase, commits })?;
        self.mark(commits)
    }

    /// Enters a phase durably. A store that lacks commits stays `Stopped`.
    pub(crate) fn enter(&self, phase: Phase) -> io::Result<()> {
        let mut written = self.written.lock();
        let Content { phase: before, commits } = written.content;
        if before == phase || before == Phase::Stopped {
            return Ok(());
        }
        written.put(Content { phase, commits })?;
        written.file.sync_data()
    }

    /// Records that the store is open at this commit. A store that lacks commits stays `Stopped`.
    pub(crate) fn open(&self, commits: u64) -> io::Result<()> {
        if self.is_stopped() { Ok(()) } else { self.accept(commits) }
    }

    /// Accepts the loss of all commits after this one.
    pub(crate) fn accept(&self, commits: u64) -> io::Result<()> {
        let mut written = self.written.lock();
        written.put(Content { phase: Phase::Open, commits })?;
        written.file.sync_data()?;
        self.mark(commits)?;
        self.is_stopped.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether the open file is still the one at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let opened = self.written.lock().file.metadata().map(identity);
        matches!((opened, fs::metadata(&self.path).map(identity)), (Ok(opened), Ok(found)) if opened == found)
    }
}

impl Written {
    fn put(&mut self, content: Content) -> io::Result<()> {
        let serial = self.serial + 1;
        let slot = usize::from(!serial.is_multiple_of(2));
        self.file.write_all_at(render(serial, content).as_bytes(), (slot * SLOT_BYTES) as u64)?;
        (self.serial, self.content) = (serial, content);
        Ok(())
    }
}

fn newest(bytes: &[u8]) -> Option<(u64, Content)> {
    let slots = bytes.chunks(SLOT_BYTES).take(SLOTS).filter_map(parse);
    slots.max_by_key(|(serial, _)| *serial)
}

fn render(serial: u64, Content { phase, commits }: Content) -> String {
    let content = format!("bates store {:<10} commit {commits:020} write {serial:020}", phase.name());
    format!("{content} check {:016x}\n", checksum(content.as_bytes()))
}

/// Accepts only a line that [`render`] would write.
fn parse(slot: &[u8]) -> Option<(u64, Content)> {
    let line = slot.split_inclusive(|byte| *byte == b'\n').next()?;
    let mut words = str::from_utf8(line).ok()?.split_whitespace().skip(2);
    let name = words.next()?;
    let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name)?;
    let mut number = || words.nth(1)?.parse().ok();
    let (commits, serial) = (number()?, number()?);
    let content = Content { phase, commits };
    (render(serial, content).as_bytes() == line).then_some((serial, content))
}

/// FNV-1a: one changed byte always changes it.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Content = Content { phase: Phase::Open, commits: 7 };

    fn content_of(path: &Path) -> Option<Content> {
        match StateFile::find(path).unwrap() {
            StateFileRead::Readable(file) => Some(file.content()),
            StateFileRead::Missing | StateFileRead::Unreadable => None,
        }
    }

    #[test]
    fn the_last_write_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bates.state");
        assert!(matches!(StateFile::find(&path).unwrap(), StateFileRead::Missing));
        let file = StateFile::create(&path, OPEN).unwrap();
        assert_eq!(content_of(&path), Some(OPEN));
        for commits in 8..20 {
            file.record_commit(commits).unwrap();
            assert_eq!(content_of(&path), Some(Content { commits, ..OPEN }));
        }
        file.enter(Phase::Closed).unwrap();
        assert_eq!(content_of(&path), Some(Content { phase: Phase::Closed, commits: 19 }));
    }

    /// Whatever part of the last write reached the disk, the file shows that write or the one before it.
    #[test]
    fn a_torn_write_leaves_the_write_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bates.state");
        let file = StateFile::create(&path, OPEN).unwrap();
        file.record_commit(8).unwrap();
        let before = fs::read(&path).unwrap();
        file.record_commit(9).unwrap();
        let after = fs::read(&path).unwrap();
        for cut in 0..=SLOTS * SLOT_BYTES {
            for (front, back) in [(&after, &before), (&before, &after)] {
                let (_, content) = newest(&[&front[..cut], &back[cut..]].concat()).unwrap();
                assert!([8, 9].contains(&content.commits), "cut at {cut}: {content:?}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_never_read_as_another_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bates.state");
        StateFile::create(&path, OPEN).unwrap().record_commit(8).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for bit in 0..SLOTS * SLOT_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (_, content) = newest(&bytes).unwrap();
            assert!([7, 8].contains(&content.commits), "bit {bit}: {content:?}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        fs::write(&path, "garbage").unwrap();
        assert!(matches!(StateFile::find(&path).unwrap(), StateFileRead::Unreadable));
    }

    #[test]
    fn a_stopped_store_stays_stopped_until_the_loss_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bates.state");
        let stopped = Content { phase: Phase::Stopped, commits: 7 };
        let file = StateFile::create(&path, stopped).unwrap();
        file.record_commit(9).unwrap();
        file.enter(Phase::Closed).unwrap();
        assert_eq!(content_of(&path), Some(stopped));
        file.accept(5).unwrap();
        assert_eq!(content_of(&path), Some(Content { phase: Phase::Open, commits: 5 }));
    }
}

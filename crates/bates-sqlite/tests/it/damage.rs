//! A store whose process was killed and whose log was then damaged: it opens with every answered position, or
//! it is refused.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use bates_core::store::prelude::*;
use bates_core::{AssignRequest, DocumentContent};
use bates_sqlite::{OpenError, OpenMode, SqliteStore};
use tempfile::TempDir;

use super::documents;
use super::granting::{Answered, Granting, SCOPES, grant, pin, repeated};

pub(crate) const LOG: &str = "bates.db-wal";

/// One damage to the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Flipped { byte: u64, bit: u8 },
    CutAt(u64),
}

impl Fault {
    /// Damages a log; returns `false` if the log does not reach that far.
    pub(crate) fn apply(self, log: &Path) -> bool {
        let Ok(file) = File::options().read(true).write(true).open(log) else { return false };
        let length = file.metadata().unwrap().len();
        match self {
            Self::CutAt(cut) if cut < length => file.set_len(cut).unwrap(),
            Self::Flipped { byte, bit } if byte < length => {
                let mut content = [0];
                file.read_exact_at(&mut content, byte).unwrap();
                file.write_all_at(&[content[0] ^ 1 << bit], byte).unwrap();
            }
            _ => return false,
        }
        true
    }
}

pub(crate) fn copy(from: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

/// Damages every field of the header and of the first frame, and samples of the rest of the file.
fn faults(log: &Path) -> Vec<Fault> {
    const HEADER: u64 = 32;
    const FRAME: u64 = 24 + 4096;
    let length = fs::metadata(log).unwrap().len();
    let flips =
        (0..HEADER + 24).step_by(4).chain((HEADER..length).step_by(usize::try_from(length / 97).unwrap()));
    let flips = flips.zip((0..8).cycle()).map(|(byte, bit)| Fault::Flipped { byte, bit });
    let frames = (length - HEADER) / FRAME;
    let ends =
        (0..=frames).step_by(usize::try_from(frames / 40 + 1).unwrap()).map(|frame| HEADER + frame * FRAME);
    let cuts = ends.flat_map(|end| [end, end + 1, (end + 2000).min(length)]).chain([0, 1, 31]);
    flips.chain(cuts.map(Fault::CutAt)).collect()
}

/// Opens a copy with each fault. Returns how many were opened, and how many were refused.
async fn open_damaged(crashed: &Path, answered: &Answered, faults: Vec<Fault>) -> (usize, usize) {
    let (mut opened, mut refused, mut wrong) = (0, 0, Vec::new());
    for fault in faults {
        let copy = copy(crashed);
        if !fault.apply(&copy.path().join(LOG)) {
            continue;
        }
        match SqliteStore::open(copy.path(), OpenMode::First) {
            Ok(store) => match &*repeated(&store, answered).await {
                [] => opened += 1,
                scopes => wrong.push(format!("{fault:?}: {scopes:?} repeat positions")),
            },
            Err(OpenError::Damaged { .. }) => refused += 1,
            Err(error) => wrong.push(format!("{fault:?}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), opened + refused + wrong.len());
    (opened, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_refused_or_loses_no_answered_position() {
    let folder = TempDir::new().unwrap();
    let answered = Granting::start(folder.path()).kill_after(300);
    let faults = faults(&folder.path().join(LOG));
    let (opened, refused) = open_damaged(folder.path(), &answered, faults).await;
    assert!(refused > 100, "{opened} opened, {refused} refused");
}

/// After a checkpoint, the store writes the log from its beginning again.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_that_was_restarted_is_refused_or_loses_no_answered_position() {
    let folder = TempDir::new().unwrap();
    let store = documents::open_pinned(folder.path()).await;
    let database = || fs::metadata(folder.path().join("bates.db")).unwrap().len();
    let mut answered = Answered::new();
    pin(&store).await;
    let grant_all = async |answered: &mut Answered| {
        for scope in 0..SCOPES {
            answered.insert(scope, grant(&store, scope).await.unwrap());
        }
    };
    let (initial, megabyte) = (database(), format!("\"{}\"", "x".repeat(1 << 20)));
    while database() == initial {
        grant_all(&mut answered).await;
        let content = DocumentContent::Document(megabyte.as_str().into());
        store.assign(AssignRequest { content, ..documents::document(None) }).await.unwrap();
    }
    // The next call waits until the checkpoint is complete.
    store.probe().await.unwrap();
    // One copy is what a kill would leave now; a second copy is taken a little later.
    let early = (copy(folder.path()), answered.clone());
    grant_all(&mut answered).await;
    let mut outcomes = (0, 0);
    for (crashed, answered) in [early, (copy(folder.path()), answered.clone())] {
        // The last positions lie in the part of the log that was not overwritten yet.
        let flips = [0, 30, 60, 8_000, 200_000, 20_000_000].map(|byte| Fault::Flipped { byte, bit: 3 });
        let cuts = [0, 32, 20_000, 500_000, 20_000_000].map(Fault::CutAt);
        let faults = flips.into_iter().chain(cuts).collect();
        let (opened, refused) = open_damaged(crashed.path(), &answered, faults).await;
        outcomes = (outcomes.0 + opened, outcomes.1 + refused);
    }
    assert!(outcomes.0 > 0 && outcomes.1 > 0, "(opened, refused): {outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_store_and_its_copy_open_without_loss() {
    let folder = TempDir::new().unwrap();
    for _ in 0..3 {
        let answered = Granting::start(folder.path()).kill_after(50);
        for folder in [copy(folder.path()).path(), folder.path()] {
            let store = SqliteStore::open(folder, OpenMode::First).unwrap();
            assert_eq!(repeated(&store, &answered).await, [0_usize; 0]);
        }
    }
}

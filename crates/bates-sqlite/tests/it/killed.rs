//! A process is killed at each of its system calls in turn, also while it opens or closes the store. The
//! store opens again, with every answered position.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use bates_core::store::prelude::*;
use bates_sqlite::{Damage, OpenError, OpenMode, SqliteStore};
use tempfile::TempDir;

use super::damage::{Fault, LOG, copy};
use super::granting::{Answered, Granting, repeated, scope_id};

/// Kills a process at its first such call, the next at its second and so on, until one ends by itself. Checks
/// the folder after each kill: first with an existing store, then with a new one. Returns the number of
/// kills.
async fn kill_at_every(calls: &str, check: impl AsyncFn(&Path, &Answered, &str)) -> u32 {
    let closed = TempDir::new().unwrap();
    assert!(Granting::start_once(closed.path(), &[]).wait().1);
    let mut kills = 0;
    // Creating a store takes many more calls, most of them alike.
    for (is_first, step) in [(false, 1), (true, 3)] {
        for nth in (1..).step_by(step) {
            let folder = if is_first { TempDir::new().unwrap() } else { copy(closed.path()) };
            let inject = format!("inject={calls}:signal=KILL:when={nth}");
            let strace = ["-o", "/dev/null", "-e", &inject].map(OsStr::new);
            let (answered, is_over) = Granting::start_once(folder.path(), &strace).wait();
            check(folder.path(), &answered, &format!("{calls} {nth}")).await;
            if is_over {
                break;
            }
            kills += 1;
        }
    }
    kills
}

async fn check_complete(folder: &Path, answered: &Answered, killed_at: &str) {
    for _ in 0..2 {
        let opened = SqliteStore::open(folder, OpenMode::First);
        let store = opened.unwrap_or_else(|error| panic!("killed at {killed_at}: {error}"));
        assert_eq!(repeated(&store, answered).await, [0_usize; 0], "killed at {killed_at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_sync_leaves_a_store_that_opens() {
    kill_at_every("fsync,fdatasync", check_complete).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_removes_truncates_or_renames_a_file_leaves_a_store_that_opens() {
    for calls in ["unlink", "ftruncate", "rename"] {
        assert!(kill_at_every(calls, check_complete).await > 0, "{calls} is never called");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_write_leaves_a_store_that_opens() {
    kill_at_every("pwrite64", check_complete).await;
}

/// During a checkpoint, the database alone is a mixture of old and new pages.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_at_any_write_a_damaged_log_is_refused_or_not_needed() {
    let faults = [0, 24, 40].map(|byte| Fault::Flipped { byte, bit: 0 });
    let faults = faults.into_iter().chain([0, 32, 32 + 4120].map(Fault::CutAt));
    let faults: Vec<Fault> = faults.collect();
    kill_at_every("pwrite64", async |folder: &Path, answered: &Answered, killed_at: &str| {
        for fault in &faults {
            let copy = copy(folder);
            if !fault.apply(&copy.path().join(LOG)) {
                continue;
            }
            match SqliteStore::open(copy.path(), OpenMode::First) {
                Ok(store) => {
                    let scopes = repeated(&store, answered).await;
                    assert_eq!(scopes, [0_usize; 0], "killed at {killed_at}, {fault:?}");
                }
                // The database of a new store is empty without its log.
                Err(OpenError::Damaged { .. } | OpenError::Gone(_)) => {}
                Err(error) => panic!("killed at {killed_at}, {fault:?}: {error}"),
            }
        }
    })
    .await;
}

/// Only a backup helps then; the test follows the steps that the error names.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_checkpointed_database_without_its_log_is_replaced_by_a_backup() {
    let backup = TempDir::new().unwrap();
    assert!(Granting::start_once(backup.path(), &[]).wait().1);
    let mixed = (1..).find_map(|nth| {
        let folder = copy(backup.path());
        let inject = format!("inject=pwrite64:signal=KILL:when={nth}");
        let strace = ["-o", "/dev/null", "-e", &inject].map(OsStr::new);
        let (answered, is_over) = Granting::start_once(folder.path(), &strace).wait();
        assert!(!is_over, "no kill hit the checkpoint");
        let is_damaged = Fault::CutAt(0).apply(&folder.path().join(LOG));
        let refused = SqliteStore::open(folder.path(), OpenMode::First).err();
        let is_mixed = matches!(refused, Some(OpenError::Damaged { damage: Damage::Mixed, .. }));
        (is_damaged && is_mixed).then_some((folder, answered))
    });
    let (folder, answered) = mixed.unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(SqliteStore::open(folder.path(), OpenMode::Stopped).is_err());
    fs::copy(backup.path().join("bates.db"), path("bates.db")).unwrap();
    for name in [LOG, "bates.state"] {
        fs::remove_file(path(name)).unwrap();
    }
    let refused = SqliteStore::open(folder.path(), OpenMode::First).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { damage: Damage::StateMissing, .. }), "{refused}");
    let store = SqliteStore::open(folder.path(), OpenMode::Stopped).unwrap();
    for (scope, to) in &answered {
        store.raise_floor(scope_id(*scope), *to, None).await.unwrap();
    }
    assert_eq!(store.accept_loss(), Ok(true));
    drop(store);
    check_complete(folder.path(), &answered, "a checkpoint").await;
}

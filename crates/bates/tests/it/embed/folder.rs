//! A folder: one process has it open at a time, and numbering continues after a close, on either kind of runtime.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bates::{Bates, Error, ErrorCode, OpenError, OpenMode, Settings};
use tempfile::tempdir;
use tokio::runtime::{Builder, Runtime};

use super::{PLAN, open, series};
use crate::running::Server;

/// A runtime of each kind, with only the features that the library needs.
fn runtimes() -> [Runtime; 2] {
    let build = |mut builder: Builder| builder.enable_time().build().unwrap();
    [build(Builder::new_current_thread()), build(Builder::new_multi_thread())]
}

#[test]
fn numbering_continues_without_a_gap_after_a_close_on_either_runtime() {
    for runtime in runtimes() {
        let folder = tempdir().unwrap();
        for lifetime in 0..20 {
            let closed = runtime.block_on(async {
                let bates = open(folder.path()).await;
                let documents = bates.series("document").unwrap().scope(PLAN);
                for nth in 0..50 {
                    let expected = format!("PROJ-9012-{}", 1001 + lifetime * 50 + nth);
                    assert_eq!(documents.next().await.unwrap(), &*expected);
                }
                drop(documents);
                bates.close().await
            });
            assert_eq!(closed.unwrap(), 0, "no number is lost");
        }
    }
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_last_numbering_is_dropped() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    documents.next().await.unwrap();
    let refused = Bates::open(folder.path(), series()).await.err().unwrap();
    assert!(matches!(&refused, Error::Open(OpenError::InUseHere(_))), "{refused}");
    assert_eq!((refused.code(), refused.may_burn()), (ErrorCode::STORE_UNAVAILABLE, false));
    bates.close().await.unwrap();
    let refused = documents.next().await.unwrap_err();
    assert_eq!((refused.code(), refused.may_burn()), (ErrorCode::STOPPING, false));
    assert!(Bates::open(folder.path(), series()).await.is_err(), "a numbering keeps the folder open");
    drop(documents);
    open(folder.path()).await.close().await.unwrap();
}

#[tokio::test]
async fn a_server_and_a_program_use_a_folder_one_after_the_other_and_never_together() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1001");
    let command = Command::new(env!("CARGO_BIN_EXE_bates"));
    let refused = Server::try_start(command, folder.path(), "127.0.0.1:0").err().unwrap();
    assert!(refused.contains("is in use by another process"), "{refused}");
    drop(documents);
    bates.close().await.unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.redis_cli(&["LPOP", "id-pool:PROJ:9012"]), "PROJ-9012-1002");
    assert!(Bates::open(folder.path(), series()).await.is_err());
    server.stop();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1003");
}

/// A child process inherits the lock of the folder until it executes another program.
#[test]
fn a_folder_is_free_after_a_close_even_while_processes_are_started() {
    let (folder, is_over) = (tempdir().unwrap(), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let [runtime, _] = runtimes();
        let refused = (0..200).find_map(|_| {
            let opened = runtime.block_on(Bates::open(folder.path(), series()));
            opened.map(|bates| runtime.block_on(bates.close())).err()
        });
        is_over.store(true, Ordering::Relaxed);
        assert!(refused.is_none(), "{refused:?}");
    });
}

/// A program that ends without closing the folder.
#[test]
fn a_drop_without_a_close_skips_numbers_and_repeats_none() {
    let (folder, mut last) = (tempdir().unwrap(), 1000);
    for _ in 0..5 {
        for runtime in runtimes() {
            let number = runtime.block_on(async {
                let documents = open(folder.path()).await.series("document").unwrap().scope(PLAN);
                documents.next().await.unwrap().position().value()
            });
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    }
    assert!(last > 1010, "the rest of each range is skipped");
}

#[tokio::test]
async fn a_folder_without_its_database_starts_over_only_with_open_mode_new() {
    let folder = tempdir().unwrap();
    open(folder.path()).await.close().await.unwrap();
    std::fs::remove_file(folder.path().join("bates.db")).unwrap();
    let refused = Bates::open(folder.path(), series()).await.err().unwrap();
    assert_eq!(refused.code(), ErrorCode::STORE_POISONED, "{refused}");
    let settings = Settings { open_mode: OpenMode::New, ..Settings::default() };
    Bates::open_with(folder.path(), series(), settings).await.unwrap().close().await.unwrap();
}

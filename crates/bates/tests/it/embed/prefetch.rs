//! Prefetched numbers inside a program: numbers of the series, none repeated, and every unused one reported.

use std::collections::BTreeSet;
use std::thread;

use bates::{Bates, Error, GapFilter, GapReason, Promise, Series, TakeError};
use tempfile::tempdir;
use tokio::runtime::Builder;

use super::{PLAN, open};

const THREADS: usize = 4;
const EACH: usize = 50_000;

#[tokio::test]
async fn prefetched_numbers_are_numbers_of_the_series() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    let held = documents.prefetch(10);
    assert_eq!(held.next().await.unwrap().to_string(), "PROJ-9012-1001");
    assert_eq!(held.try_next().unwrap().to_string(), "PROJ-9012-1002");
    assert_eq!(
        documents.next().await.unwrap(),
        "PROJ-9012-1011",
        "other callers do not get prefetched numbers"
    );
    let keys = bates.series("short").unwrap();
    let short = keys.prefetch(10);
    for key in short.take(50).await.unwrap() {
        assert!(keys.validate(&key).is_valid(), "{key}");
    }
    let ordered = bates.series("conversation").unwrap().scope([("conversation", "1")]).prefetch(10);
    let Err(TakeError::Failed(refused)) = ordered.next().await else {
        panic!("an ordered series gave a prefetched number")
    };
    assert!(matches!(&*refused, Error::Lease(_)) && refused.code().name() == "not_unique", "{refused}");
}

/// Threads that never wait take numbers: each position was taken once, is a gap, or was never granted.
fn check_prefetch_on(mut builder: Builder) {
    let folder = tempdir().unwrap();
    let runtime = builder.enable_time().build().unwrap();
    let bates = runtime.block_on(Bates::open(folder.path(), [Series::new("n", "{seq}")])).unwrap();
    let held = bates.series("n").unwrap().prefetch(100);
    let mut taken: BTreeSet<u64> = BTreeSet::new();
    let take = || {
        let mut own = Vec::new();
        while own.len() < EACH {
            match held.try_next() {
                Ok(number) => own.push(number.position().value()),
                Err(TakeError::Refilling) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        own
    };
    let all: Vec<u64> = thread::scope(|threads| {
        let takers: Vec<_> = (0..THREADS).map(|_| threads.spawn(take)).collect();
        runtime.block_on(async {
            while !takers.iter().all(thread::ScopedJoinHandle::is_finished) {
                tokio::task::yield_now().await;
            }
        });
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    taken.extend(&all);
    assert_eq!(taken.len(), THREADS * EACH, "each number is taken once");
    let unused = runtime.block_on(held.close()).unwrap();
    runtime.block_on(bates.reconcile()).unwrap();
    let gaps = runtime.block_on(bates.gaps(GapFilter::default(), None, 10_000)).unwrap();
    assert!(gaps.iter().all(|gap| gap.missing.reason == GapReason::LeaseLost), "{gaps:?}");
    let gaps: BTreeSet<u64> =
        gaps.iter().flat_map(|gap| gap.missing.range.from()..gap.missing.range.to()).collect();
    assert_eq!(gaps.len() as u64, unused);
    assert!(gaps.is_disjoint(&taken));
    assert_eq!(
        gaps.union(&taken).copied().max(),
        Some((gaps.len() + taken.len()) as u64),
        "every position is taken or a gap"
    );
    drop(held);
    runtime.block_on(bates.close()).unwrap();
    let bates = runtime.block_on(Bates::open(folder.path(), [Series::new("n", "{seq}")])).unwrap();
    let next = runtime.block_on(bates.series("n").unwrap().next()).unwrap();
    assert_eq!(
        next.position().value(),
        (gaps.len() + taken.len()) as u64 + 1,
        "numbering continues after them"
    );
}

#[test]
fn threads_take_numbers_that_a_multi_threaded_runtime_fetches() {
    check_prefetch_on(Builder::new_multi_thread());
}

#[test]
fn threads_take_numbers_that_a_current_thread_runtime_fetches() {
    check_prefetch_on(Builder::new_current_thread());
}

/// The unused numbers become a gap even if the folder is closed right after the drop.
#[tokio::test]
async fn numbers_of_a_dropped_prefetch_are_reported_before_the_folder_is_free() {
    let folder = tempdir().unwrap();
    let bates =
        Bates::open(folder.path(), [Series::new("n", "{seq}").promise(Promise::Unique)]).await.unwrap();
    let held = bates.series("n").unwrap().prefetch(10);
    held.next().await.unwrap();
    drop(held);
    bates.close().await.unwrap();
    let bates = loop {
        match Bates::open(folder.path(), [Series::new("n", "{seq}")]).await {
            Ok(bates) => break bates,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    bates.reconcile().await.unwrap();
    let gaps = bates.gaps(GapFilter::default(), None, 10).await.unwrap();
    assert_eq!(gaps.iter().map(|gap| gap.missing.range.count()).sum::<u64>(), 9, "{gaps:?}");
}

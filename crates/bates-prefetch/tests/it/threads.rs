//! Threads that take at the same time, while it is refilled and at last dropped.

use std::collections::BTreeSet;

use bates_prefetch::{Prefetch, TakeError};
use tokio::runtime::Runtime;

use super::source::Counting;

const THREADS: usize = 12;
const EACH: usize = 40_000;

/// More threads than shards, a buffer that is small for them, and one that gives up in between.
#[test]
fn no_position_comes_twice_and_what_was_not_taken_is_reported() {
    for prefetch in [Prefetch::new(1).at_most(7), Prefetch::new(100), Prefetch::new(5_000)] {
        let runtime = Runtime::new().unwrap();
        let source = Counting::new();
        let numbers = runtime.block_on(async { source.prefetch(prefetch) });
        let take = || {
            let (numbers, mut taken) = (numbers.clone(), Vec::with_capacity(EACH));
            while taken.len() < EACH {
                match numbers.try_next() {
                    Ok(number) => taken.push(number.position().value()),
                    Err(TakeError::Refilling) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
            taken
        };
        let each: Vec<Vec<u64>> = std::thread::scope(|threads| {
            let threads: Vec<_> = (0..THREADS).map(|_| threads.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        runtime.block_on(numbers.close()).unwrap();
        let taken: BTreeSet<u64> = each.iter().flatten().copied().collect();
        assert_eq!(taken.len(), THREADS * EACH, "each is taken once");
        let (unused, open) = source.books(|books| (books.unused.clone(), books.open.len()));
        let unused: BTreeSet<u64> = unused.into_iter().collect();
        assert!(unused.is_disjoint(&taken), "nothing that was taken is reported");
        let last = unused.iter().chain(&taken).max().copied().unwrap();
        assert!(open == 0 && (1..=last).all(|at| unused.contains(&at) || taken.contains(&at)));
    }
}

//! Threads that take at the same time from a buffer that is refilled and finally closed.

use std::collections::BTreeSet;

use bates_prefetch::{Prefetch, TakeError};
use tokio::runtime::Runtime;

use super::source::TestSource;

const THREADS: usize = 12;
const EACH: usize = 40_000;

/// More threads than shards, with buffers that are too small for them or large.
#[test]
fn every_position_is_taken_once_or_reported_as_unused() {
    for prefetch in [Prefetch::new(1).at_most(7), Prefetch::new(100), Prefetch::new(5_000)] {
        let runtime = Runtime::new().unwrap();
        let source = TestSource::new();
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
        assert_eq!(taken.len(), THREADS * EACH, "each position is taken once");
        let (unused, open) = source.state(|state| (state.unused.clone(), state.open.len()));
        let unused: BTreeSet<u64> = unused.into_iter().collect();
        assert!(unused.is_disjoint(&taken), "no taken position is reported");
        let last = unused.iter().chain(&taken).max().copied().unwrap();
        assert!(open == 0 && (1..=last).all(|at| unused.contains(&at) || taken.contains(&at)));
    }
}

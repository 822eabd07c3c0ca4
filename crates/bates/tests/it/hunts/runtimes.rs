//! Library calls from short-lived runtimes and from threads without one, beside prefetched numbers.

use std::collections::HashSet;
use std::thread;

use bates::{Bates, Limits, Series, TakeError};
use tempfile::tempdir;
use tokio::runtime::{Builder, Runtime};

use super::Hunt;
use crate::embed::runtimes::block_on;

#[test]
fn short_lived_runtimes_repeat_no_number_and_block_no_caller() {
    let (folder, owner, mut hunt) = (tempdir().unwrap(), Runtime::new().unwrap(), Hunt::begin());
    let limits = Limits { lease_min: 1, lease_max: 64, ..Limits::default() };
    let opened = Bates::open(folder.path(), [Series::new("n", "{seq}").limits(limits)]);
    let bates = owner.block_on(opened).unwrap();
    let numbering = bates.series("n").unwrap();
    let held = numbering.prefetch(100);
    let each: Vec<(Vec<u64>, u64)> = thread::scope(|threads| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (mut hunt, numbering, held) = (hunt.branch(), &numbering, &held);
                threads.spawn(move || {
                    let (mut taken, mut runtimes) = (Vec::new(), 0);
                    while hunt.is_running() {
                        let count = 1 + hunt.below(40);
                        let take = numbering.take(usize::try_from(count).unwrap());
                        let numbers = match hunt.below(4) {
                            0 => block_on(take).unwrap(),
                            1 => Builder::new_current_thread().build().unwrap().block_on(take).unwrap(),
                            2 => {
                                let own = Builder::new_multi_thread().worker_threads(1).build().unwrap();
                                let numbers = own.block_on(take).unwrap();
                                own.shutdown_background();
                                numbers
                            }
                            _ => {
                                for _ in 0..count {
                                    match held.try_next() {
                                        Ok(number) => taken.push(number.position().value()),
                                        Err(TakeError::Refilling) => break,
                                        Err(error) => panic!("{error}"),
                                    }
                                }
                                continue;
                            }
                        };
                        runtimes += 1;
                        taken.extend(numbers.iter().map(|number| number.position().value()));
                    }
                    (taken, runtimes)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = HashSet::new();
    for number in each.iter().flat_map(|(taken, _)| taken) {
        assert!(seen.insert(*number), "{number} came twice");
    }
    let unused = owner.block_on(held.close()).unwrap();
    drop((held, numbering));
    owner.block_on(bates.close()).unwrap();
    let runtimes: u64 = each.iter().map(|(_, runtimes)| runtimes).sum();
    println!("runtimes: {} numbers, {runtimes} short-lived runtimes, {unused} returned unused", seen.len());
}

//! Library calls cancelled at any point: no number is repeated, and every missing one is explained.

use std::collections::BTreeSet;

use bates::{Bates, GapFilter, Limits, Promise, Series};
use tempfile::tempdir;

use super::Hunt;

fn series() -> [Series; 4] {
    let limits = Limits { lease_min: 4, lease_max: 256, ..Limits::default() };
    [
        Series::new("unique", "{seq}").limits(limits),
        Series::new("gapless", "{seq}").promise(Promise::Gapless),
        Series::new("audited", "{seq}").limits(limits).audited(),
        Series::new("other", "{seq}").promise(Promise::Gapless),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_cancelled_at_any_point_repeat_no_number_and_leave_none_unexplained() {
    let (folder, mut hunt) = (tempdir().unwrap(), Hunt::begin());
    let mut taken: [BTreeSet<u64>; 3] = Default::default();
    let (mut calls, mut cancelled, mut openings) = (0_u64, 0_u64, 0_u64);
    while hunt.is_running() {
        let bates = Bates::open(folder.path(), series()).await.unwrap();
        openings += 1;
        let tasks: Vec<_> = (0..6_usize)
            .map(|at| {
                let numbering = bates.series(["unique", "gapless", "audited"][at % 3]).unwrap();
                let (other, mut hunt) = (bates.series("other").unwrap(), hunt.branch());
                tokio::spawn(async move {
                    let (mut taken, mut calls, mut cancelled) = (Vec::new(), 0, 0);
                    for _ in 0..200 {
                        let (count, mode) = (1 + hunt.below(5), hunt.below(4));
                        calls += 1;
                        let cancel = async {
                            match mode {
                                0 => std::future::pending().await,
                                1 => drop(other.next().await),
                                _ => {
                                    for _ in 0..mode * 5 {
                                        tokio::task::yield_now().await;
                                    }
                                }
                            }
                        };
                        tokio::select! {
                            biased;
                            () = cancel => cancelled += 1,
                            numbers = numbering.take(usize::try_from(count).unwrap()) => {
                                taken.extend(numbers.unwrap().iter().map(|number| number.position().value()));
                            }
                        }
                    }
                    (at % 3, taken, calls, cancelled)
                })
            })
            .collect();
        for task in tasks {
            let (series, numbers, task_calls, task_cancelled) = task.await.unwrap();
            for number in numbers {
                assert!(taken[series].insert(number), "{number} came twice");
            }
            calls += task_calls;
            cancelled += task_cancelled;
        }
        bates.close().await.unwrap();
    }
    let bates = Bates::open(folder.path(), series()).await.unwrap();
    bates.reconcile().await.unwrap();
    let mut explained = 0;
    for (name, taken) in ["unique", "gapless", "audited"].into_iter().zip(&taken) {
        let next = bates.series(name).unwrap().peek().await.unwrap().next.unwrap().value();
        let filter = GapFilter { series: Some(name.parse().unwrap()), ..GapFilter::default() };
        let gaps = bates.gaps(filter, None, 10_000_000).await.unwrap();
        let gaps: BTreeSet<u64> =
            gaps.iter().flat_map(|gap| gap.missing.range.from()..gap.missing.range.to()).collect();
        assert!(gaps.is_disjoint(taken), "{name}: an issued number is reported as a gap");
        let unexplained: Vec<u64> =
            (1..next).filter(|position| !taken.contains(position) && !gaps.contains(position)).collect();
        assert!(unexplained.is_empty(), "{name}: {unexplained:?}");
        explained += gaps.len();
    }
    bates.close().await.unwrap();
    let numbers: usize = taken.iter().map(BTreeSet::len).sum();
    println!(
        "cancelled calls: {calls} calls, {cancelled} cancelled, {numbers} numbers, {explained} gaps, {openings} openings"
    );
}

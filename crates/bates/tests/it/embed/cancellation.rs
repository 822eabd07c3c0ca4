//! Cancelled calls: no other caller gets their numbers, and each number that they took is a gap with a reason.

use std::collections::BTreeSet;

use bates::{Bates, GapFilter, GapReason, Limits, Promise, Series};
use tempfile::tempdir;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_number_of_a_cancelled_call_is_explained() {
    let limits = Limits { lease_min: 4, lease_max: 64, ..Limits::default() };
    let gapless = || Series::new("gapless", "{seq}").promise(Promise::Gapless);
    let audited = || Series::new("audited", "{seq}").limits(limits).audited();
    let folder = tempdir().unwrap();
    let other = Series::new("other", "{seq}").promise(Promise::Gapless);
    let bates = Bates::open(folder.path(), [gapless(), audited(), other]).await.unwrap();
    // This call takes about as long as the one under test. The two share a commit, so the call under test is often
    // cancelled just after it.
    let other = bates.series("other").unwrap();
    for name in ["gapless", "audited"] {
        let numbering = bates.series(name).unwrap();
        let (mut taken, mut cancelled) = (BTreeSet::new(), 0);
        for call in 0..600_usize {
            tokio::select! {
                biased;
                () = async { if call % 3 == 0 { std::future::pending().await } else { drop(other.next().await) } } => {
                    cancelled += 1;
                }
                numbers = numbering.take(1 + call % 3) => {
                    taken.extend(numbers.unwrap().iter().map(|number| number.position().value()));
                }
            }
        }
        assert!(
            cancelled > 50 && taken.len() > 50,
            "{cancelled} calls cancelled, {} numbers taken",
            taken.len()
        );
        // Cancelled calls end in the background and report their numbers there.
        for attempt in 0.. {
            bates.reconcile().await.unwrap();
            let next = numbering.peek().await.unwrap().next.unwrap().value();
            let missing: BTreeSet<u64> = (1..next).filter(|position| !taken.contains(position)).collect();
            assert!(!missing.is_empty(), "some numbers were taken and not received");
            let filter = GapFilter { series: Some(name.parse().unwrap()), ..GapFilter::default() };
            let gaps = bates.gaps(filter, None, 100_000).await.unwrap();
            assert!(gaps.iter().all(|gap| gap.missing.reason == GapReason::Burned), "{gaps:?}");
            let explained: BTreeSet<u64> =
                gaps.iter().flat_map(|gap| gap.missing.range.from()..gap.missing.range.to()).collect();
            assert!(explained.is_disjoint(&taken), "an issued number is reported as a gap");
            if explained == missing {
                break;
            }
            let unexplained: Vec<_> = missing.symmetric_difference(&explained).collect();
            assert!(attempt < 1_000, "missing or explained, and not both: {unexplained:?}");
            tokio::task::yield_now().await;
        }
    }
    drop(other);
    bates.close().await.unwrap();
}

//! Positions that were set aside: what every store must do with them.

use std::collections::BTreeSet;

use bates_core::store::prelude::*;
use bates_core::{Assign, AssignError, Grant, GrantError, Position, Purpose, Surrendered, Tail, Want};

use super::exercise::{DataSet, granted, next, open_pinned, place, positions, want};
use super::outbox;

/// All but every third one and a run in the middle, in a space of 200.
fn aside() -> BTreeSet<u64> {
    (1001..1201).filter(|position| position % 3 == 0 || (1040..1060).contains(position)).collect()
}

pub async fn what_was_set_aside_is_never_granted_and_all_else_is<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let aside = aside();
    let passed = store.set_aside(place("a"), positions(aside.iter().copied())).await;
    assert_eq!(passed, Ok(0));
    assert_eq!(next(&store, place("a")).await, Some(1001), "the scope is there");
    drop(store);
    let store = data.open().await;
    let mut seen = Vec::new();
    loop {
        match store.grant(Want { end: 1201, ..want(place("a"), 7) }).await {
            Ok(Grant { lease, aside, .. }) => {
                let free = positions(lease.from()..lease.to())
                    .into_iter()
                    .filter(|at| !aside.contains(at))
                    .map(Position::value);
                let before = seen.len();
                seen.extend(free);
                assert!(seen.len() - before == 7 || lease.to() == 1200, "a lease reaches over them: {lease}");
            }
            Err(GrantError::Exhausted { left: 0, elsewhere: false }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let all: Vec<u64> = (1001..1201).filter(|position| !aside.contains(position)).collect();
    assert_eq!(seen, all);
    let listed = store.aside(place("a"), 1040, 25).await.expect("a read");
    assert_eq!(listed, positions(aside.range(1040..).take(25).copied()));
    assert_eq!(granted(&store, want(place("b"), 9)).await.lease.count(), 9, "other scopes have none");
}

pub async fn setting_aside_again_changes_nothing_and_tells_what_was_granted<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let before = granted(&store, want(place("a"), 10)).await;
    for _ in 0..2 {
        assert_eq!(
            store.set_aside(place("a"), positions([1005, 1011, 1013])).await,
            Ok(1),
            "1005 was granted"
        );
    }
    let tail = Tail { place: place("a"), lease: before.lease, version: before.version, lost: vec![] };
    assert_eq!(store.surrender(tail).await, Ok(Surrendered::Gap), "it was granted before");
    let run = granted(&store, want(place("a"), 10)).await;
    assert_eq!((run.lease.from(), run.lease.to(), &run.aside), (1011, 1023, &positions([1011, 1013])));
    // What is given back is granted again, and what was set aside behind it still is not.
    let tail = Tail { place: place("a"), lease: run.lease, version: run.version, lost: vec![] };
    assert_eq!(store.surrender(tail).await, Ok(Surrendered::Returned));
    let again = granted(&store, want(place("a"), 10)).await;
    assert_eq!((again.lease, again.aside), (run.lease, run.aside), "and so does what lies within");
    // Given back and granted again at once: whoever is served together sees them as well.
    let tail = Tail { place: place("a"), lease: again.lease, version: again.version, lost: vec![] };
    let (returned, next) = tokio::join!(store.surrender(tail), store.grant(want(place("a"), 3)));
    let next = next.expect("a grant");
    let mut free = positions(next.lease.from()..next.lease.to());
    free.retain(|at| !next.aside.contains(at));
    match returned {
        Ok(Surrendered::Returned) => assert_eq!(free, positions([1012, 1014, 1015])),
        other => assert_eq!((other, free), (Ok(Surrendered::Gap), positions([1023, 1024, 1025]))),
    }
    let one = Want { purpose: Purpose::HandOut, ..want(place("b"), 1) };
    store.set_aside(place("b"), positions([1001, 1003])).await.expect("a write");
    assert_eq!(granted(&store, one).await.lease.from(), 1002, "whoever is answered at once gets one run");
}

pub async fn documents_pass_over_what_was_set_aside<D: DataSet>(data: &D) {
    let store = outbox::opened(data).await;
    let aside = aside();
    store.set_aside(place("a"), positions(aside.iter().copied())).await.expect("a write");
    let mut seen = BTreeSet::new();
    loop {
        let document = || store.assign(Assign { end: 1201, ..outbox::document("a") });
        let before = seen.len();
        let together = tokio::join!(document(), document(), document());
        for answer in <[_; 3]>::from(together) {
            match answer {
                Ok(assigned) => {
                    assert!(seen.insert(assigned.position.value()), "{} came twice", assigned.number);
                }
                Err(AssignError::Grant(GrantError::Exhausted { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        if seen.len() == before {
            break;
        }
    }
    assert_eq!(seen, (1001..1201).collect::<BTreeSet<_>>().difference(&aside).copied().collect());
}

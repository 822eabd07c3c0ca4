//! The part of the conformance suite about adopted positions: numbers of an earlier system, never granted again.

use std::collections::BTreeSet;

use bates_core::store::prelude::*;
use bates_core::{
    AssignError, AssignRequest, Grant, GrantError, GrantPurpose, GrantRequest, Position, ReleaseOutcome,
    ReleaseRequest,
};

use super::exercise::{DataSet, grant, next, open_pinned, positions, request, scope_id};
use super::outbox;

/// Every third position and a run in the middle, in a space of 200.
fn adopted() -> BTreeSet<u64> {
    (1001..1201).filter(|position| position % 3 == 0 || (1040..1060).contains(position)).collect()
}

pub async fn adopted_positions_are_never_granted_and_all_others_are<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let adopted = adopted();
    let already_granted =
        store.adopt_positions(scope_id("a"), positions(adopted.iter().copied()), None).await;
    assert_eq!(already_granted, Ok(0));
    assert_eq!(next(&store, scope_id("a")).await, Some(1001), "the scope exists");
    drop(store);
    let store = data.open().await;
    let mut seen = Vec::new();
    loop {
        match store.grant(GrantRequest { end: 1201, ..request(scope_id("a"), 7) }).await {
            Ok(Grant { range, adopted, .. }) => {
                let free = positions(range.from()..range.to())
                    .into_iter()
                    .filter(|at| !adopted.contains(at))
                    .map(Position::value);
                let before = seen.len();
                seen.extend(free);
                assert!(
                    seen.len() - before == 7 || range.to() == 1200,
                    "a grant counts only free ones: {range}"
                );
            }
            Err(GrantError::Exhausted { left: 0, held_elsewhere: false }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let all: Vec<u64> = (1001..1201).filter(|position| !adopted.contains(position)).collect();
    assert_eq!(seen, all);
    let listed = store.adopted_positions(scope_id("a"), 1040, 25).await.expect("a read");
    assert_eq!(listed, positions(adopted.range(1040..).take(25).copied()));
    assert_eq!(grant(&store, request(scope_id("b"), 9)).await.range.count(), 9, "adoption touches one scope");
}

pub async fn adopting_twice_changes_nothing_and_counts_granted_positions<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let before = grant(&store, request(scope_id("a"), 10)).await;
    for _ in 0..2 {
        assert_eq!(
            store.adopt_positions(scope_id("a"), positions([1005, 1011, 1013]), None).await,
            Ok(1),
            "1005 was granted"
        );
    }
    let release = ReleaseRequest {
        scope_id: scope_id("a"),
        range: before.range,
        version: before.version,
        lost: vec![],
    };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap), "adopting changed the version");
    let run = grant(&store, request(scope_id("a"), 10)).await;
    assert_eq!((run.range.from(), run.range.to(), &run.adopted), (1011, 1023, &positions([1011, 1013])));
    // A released range is granted again, still without its adopted positions.
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: run.range, version: run.version, lost: vec![] };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Returned));
    let again = grant(&store, request(scope_id("a"), 10)).await;
    assert_eq!((again.range, again.adopted), (run.range, run.adopted), "with the same adopted positions");
    // A release and a grant that the store may combine into one commit skip them as well.
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: again.range, version: again.version, lost: vec![] };
    let (returned, next) = tokio::join!(store.release(release), store.grant(request(scope_id("a"), 3)));
    let next = next.expect("a grant");
    let mut free = positions(next.range.from()..next.range.to());
    free.retain(|at| !next.adopted.contains(at));
    match returned {
        Ok(ReleaseOutcome::Returned) => assert_eq!(free, positions([1012, 1014, 1015])),
        other => assert_eq!((other, free), (Ok(ReleaseOutcome::Gap), positions([1023, 1024, 1025]))),
    }
    let one = GrantRequest { purpose: GrantPurpose::HandOut, ..request(scope_id("b"), 1) };
    store.adopt_positions(scope_id("b"), positions([1001, 1003]), None).await.expect("a write");
    assert_eq!(grant(&store, one).await.range.from(), 1002, "a hand-out skips adopted positions");
}

pub async fn documents_skip_adopted_positions<D: DataSet>(data: &D) {
    let store = outbox::open_two_series(data).await;
    let adopted = adopted();
    store.adopt_positions(scope_id("a"), positions(adopted.iter().copied()), None).await.expect("a write");
    let mut seen = BTreeSet::new();
    loop {
        let document = || store.assign(AssignRequest { end: 1201, ..outbox::document("a") });
        let before = seen.len();
        let together = tokio::join!(document(), document(), document());
        for answer in <[_; 3]>::from(together) {
            match answer {
                Ok(assignment) => {
                    assert!(seen.insert(assignment.position.value()), "{} came twice", assignment.number);
                }
                Err(AssignError::Grant(GrantError::Exhausted { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        if seen.len() == before {
            break;
        }
    }
    assert_eq!(seen, (1001..1201).collect::<BTreeSet<_>>().difference(&adopted).copied().collect());
}

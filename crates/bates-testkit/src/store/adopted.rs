//! Positions that were set aside: what every store must do with them.

use std::collections::BTreeSet;

use bates_core::store::prelude::*;
use bates_core::{
    AssignError, AssignRequest, Grant, GrantError, GrantPurpose, GrantRequest, Position, ReleaseOutcome,
    ReleaseRequest,
};

use super::exercise::{DataSet, granted, next, open_pinned, positions, scope_id, want};
use super::outbox;

/// All but every third one and a run in the middle, in a space of 200.
fn adopted() -> BTreeSet<u64> {
    (1001..1201).filter(|position| position % 3 == 0 || (1040..1060).contains(position)).collect()
}

pub async fn what_was_set_aside_is_never_granted_and_all_else_is<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let adopted = adopted();
    let passed = store.adopt_positions(scope_id("a"), positions(adopted.iter().copied())).await;
    assert_eq!(passed, Ok(0));
    assert_eq!(next(&store, scope_id("a")).await, Some(1001), "the scope is there");
    drop(store);
    let store = data.open().await;
    let mut seen = Vec::new();
    loop {
        match store.grant(GrantRequest { end: 1201, ..want(scope_id("a"), 7) }).await {
            Ok(Grant { range: lease, adopted, .. }) => {
                let free = positions(lease.from()..lease.to())
                    .into_iter()
                    .filter(|at| !adopted.contains(at))
                    .map(Position::value);
                let before = seen.len();
                seen.extend(free);
                assert!(seen.len() - before == 7 || lease.to() == 1200, "a lease reaches over them: {lease}");
            }
            Err(GrantError::Exhausted { left: 0, elsewhere: false }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let all: Vec<u64> = (1001..1201).filter(|position| !adopted.contains(position)).collect();
    assert_eq!(seen, all);
    let listed = store.adopted_positions(scope_id("a"), 1040, 25).await.expect("a read");
    assert_eq!(listed, positions(adopted.range(1040..).take(25).copied()));
    assert_eq!(granted(&store, want(scope_id("b"), 9)).await.range.count(), 9, "other scopes have none");
}

pub async fn setting_aside_again_changes_nothing_and_tells_what_was_granted<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    let before = granted(&store, want(scope_id("a"), 10)).await;
    for _ in 0..2 {
        assert_eq!(
            store.adopt_positions(scope_id("a"), positions([1005, 1011, 1013])).await,
            Ok(1),
            "1005 was granted"
        );
    }
    let tail = ReleaseRequest {
        scope_id: scope_id("a"),
        range: before.range,
        version: before.version,
        lost: vec![],
    };
    assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Gap), "it was granted before");
    let run = granted(&store, want(scope_id("a"), 10)).await;
    assert_eq!((run.range.from(), run.range.to(), &run.adopted), (1011, 1023, &positions([1011, 1013])));
    // What is given back is granted again, and what was set aside behind it still is not.
    let tail =
        ReleaseRequest { scope_id: scope_id("a"), range: run.range, version: run.version, lost: vec![] };
    assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Returned));
    let again = granted(&store, want(scope_id("a"), 10)).await;
    assert_eq!((again.range, again.adopted), (run.range, run.adopted), "and so does what lies within");
    // Given back and granted again at once: whoever is served together sees them as well.
    let tail =
        ReleaseRequest { scope_id: scope_id("a"), range: again.range, version: again.version, lost: vec![] };
    let (returned, next) = tokio::join!(store.release(tail), store.grant(want(scope_id("a"), 3)));
    let next = next.expect("a grant");
    let mut free = positions(next.range.from()..next.range.to());
    free.retain(|at| !next.adopted.contains(at));
    match returned {
        Ok(ReleaseOutcome::Returned) => assert_eq!(free, positions([1012, 1014, 1015])),
        other => assert_eq!((other, free), (Ok(ReleaseOutcome::Gap), positions([1023, 1024, 1025]))),
    }
    let one = GrantRequest { purpose: GrantPurpose::HandOut, ..want(scope_id("b"), 1) };
    store.adopt_positions(scope_id("b"), positions([1001, 1003])).await.expect("a write");
    assert_eq!(granted(&store, one).await.range.from(), 1002, "whoever is answered at once gets one run");
}

pub async fn documents_pass_over_what_was_set_aside<D: DataSet>(data: &D) {
    let store = outbox::opened(data).await;
    let adopted = adopted();
    store.adopt_positions(scope_id("a"), positions(adopted.iter().copied())).await.expect("a write");
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

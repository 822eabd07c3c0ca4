//! What became of the positions of pools: the part of the conformance suite in which they are popped, told of twice or
//! late, and found again.

use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantRequest, Pool, PoolSettlement, PositionRange, RangeSet, RenewRequest, ScopeId,
};

use super::exercise::{DataSet, granted, lease, positions, scope_id, series, want};
use super::pools::{account, missing, opened, pooled, popped, pushed, renewed, server, settle, standing};

/// Also where a process holds positions on both sides of them.
pub async fn what_was_popped_was_handed_out<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let epoch = renewed(&store, "a", 0).await;
    granted(&store, want(scope_id("a"), 10)).await;
    granted(&store, pooled("a", 10)).await;
    granted(&store, pooled("a", 10)).await;
    granted(&store, GrantRequest { held_from: Some(1006), ..want(scope_id("a"), 10) }).await;
    settle(&store, "a", pushed(epoch, lease(1011, 1021))).await;
    settle(&store, "a", pushed(epoch, lease(1021, 1031))).await;
    settle(&store, "a", popped(epoch, 1015)).await;
    let held = |pool: Option<PositionRange>| -> Vec<PositionRange> {
        let ends = [Some(lease(1006, 1011)), pool, Some(lease(1031, 1041))];
        RangeSet::of(ends.into_iter().flatten()).iter().collect()
    };
    assert_eq!(standing(&store, "a").await, (held(Some(lease(1015, 1031))), vec![]), "a part of a row");
    settle(&store, "a", popped(epoch, 1012)).await;
    assert_eq!(standing(&store, "a").await, (held(Some(lease(1015, 1031))), vec![]), "told late");
    settle(&store, "a", popped(epoch, 1023)).await;
    assert_eq!(standing(&store, "a").await, (held(Some(lease(1023, 1031))), vec![]), "a row, and more");
    settle(&store, "a", popped(epoch, bates_pattern::Position::MAX.value())).await;
    assert_eq!(standing(&store, "a").await, (held(None), vec![]), "all of it");
    renewed(&store, "a", epoch).await;
    assert_eq!(standing(&store, "a").await, (held(None), vec![]), "nothing was left to lose");
    // What the process held is lost with it, and what was popped still is not.
    drop(store);
    let store = data.open().await;
    granted(&store, want(scope_id("a"), 10)).await;
    let account = account(&store, scope_id("a")).await;
    let lost = account.lost.iter().map(|lost| lost.range);
    let all = RangeSet::of(account.held.iter().copied().chain(lost));
    assert_eq!(all.iter().collect::<Vec<_>>(), [lease(1006, 1011), lease(1031, 1051)]);
}

pub async fn settling_twice_changes_nothing<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let epoch = renewed(&store, "a", 0).await;
    granted(&store, pooled("a", 10)).await;
    let settling = PoolSettlement {
        epoch,
        pushed: Some(lease(1001, 1006)),
        unused: Some(lease(1006, 1011)),
        popped_to: Some(1003),
    };
    let fenced = missing(1006, 1011, GapReason::FillFenced);
    for _ in 0..2 {
        settle(&store, "a", settling.clone()).await;
        assert_eq!(standing(&store, "a").await, (vec![lease(1003, 1006)], vec![fenced]));
    }
    renewed(&store, "a", epoch).await;
    let expected = (vec![], vec![missing(1003, 1006, GapReason::PoolInvalidated), fenced]);
    for _ in 0..2 {
        settle(&store, "a", settling.clone()).await;
        assert_eq!(standing(&store, "a").await, expected, "nor in an epoch that ended");
    }
}

pub async fn what_was_popped_in_an_epoch_that_ended_does_not_count<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let first = renewed(&store, "a", 0).await;
    let second = renewed(&store, "a", first).await;
    granted(&store, pooled("a", 10)).await;
    settle(&store, "a", pushed(second, lease(1001, 1011))).await;
    for other in [first, second + 1] {
        settle(&store, "a", popped(other, 1011)).await;
        assert_eq!(standing(&store, "a").await, (vec![lease(1001, 1011)], vec![]), "{other}");
    }
}

pub async fn a_floor_and_a_setting_aside_forget_the_server<D: DataSet>(data: &D) {
    let store = opened(data).await;
    granted(&store, want(scope_id("a"), 10)).await;
    let mut epoch = 0;
    for change in ["a floor", "a floor below the cursor", "a setting aside"] {
        epoch = renewed(&store, "a", epoch).await;
        match change {
            "a floor" => drop(store.raise_floor(scope_id("a"), 2_000).await.expect("a floor")),
            "a floor below the cursor" => {
                _ = store.raise_floor(scope_id("a"), 1_500).await.expect("a floor");
            }
            _ => drop(store.adopt_positions(scope_id("a"), positions([2_005])).await.expect("a write")),
        }
        assert_eq!(store.pool(scope_id("a")).await, Ok(Pool { epoch, server: None }), "{change}");
    }
    store.raise_floor(scope_id("b"), 2_000).await.expect("a floor");
    store.adopt_positions(scope_id("b"), positions([2_005])).await.expect("a write");
    let listed = store.pools(series("document"), None, 10).await.expect("a read");
    assert_eq!(listed.len(), 1, "neither asks for a pool");
}

pub async fn pools_of_other_scopes_and_series_are_left_alone<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let other = ScopeId { series: series("other"), ..scope_id("a") };
    for at in [scope_id("a"), scope_id("b"), other.clone()] {
        let renewal = RenewRequest { expected_epoch: 0, server: server("s") };
        assert!(store.renew_pool(at.clone(), renewal).await.expect("a write").is_some(), "{at}");
        let grant = granted(&store, GrantRequest { scope_id: at.clone(), ..pooled("a", 10) }).await;
        store.settle_pool(at, pushed(1, grant.range)).await.expect("a write");
    }
    let again = granted(&store, pooled("a", 10)).await;
    let unused = PoolSettlement { epoch: 1, unused: Some(again.range), ..PoolSettlement::default() };
    settle(&store, "a", unused).await;
    settle(&store, "a", popped(1, 1005)).await;
    renewed(&store, "a", 1).await;
    store.raise_floor(scope_id("a"), 2_000).await.expect("a floor");
    store.adopt_positions(scope_id("a"), positions([2_005])).await.expect("a write");
    for at in [scope_id("b"), other] {
        let pool = Pool { epoch: 1, server: Some(server("s")) };
        assert_eq!(store.pool(at.clone()).await, Ok(pool), "{at}");
        let account = account(&store, at).await;
        assert_eq!((account.held, account.lost), (vec![lease(1001, 1011)], vec![]));
    }
}

pub async fn pools_survive_reopening<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let first = renewed(&store, "a", 0).await;
    granted(&store, pooled("a", 20)).await;
    settle(&store, "a", pushed(first, lease(1001, 1006))).await;
    settle(&store, "a", popped(first, 1003)).await;
    let unused =
        PoolSettlement { epoch: first, unused: Some(lease(1006, 1008)), ..PoolSettlement::default() };
    settle(&store, "a", unused).await;
    drop(store);
    let store = data.open().await;
    assert_eq!(store.pool(scope_id("a")).await, Ok(Pool { epoch: first, server: Some(server("s")) }));
    let found = account(&store, scope_id("a")).await;
    assert!(found.held.contains(&lease(1003, 1006)), "what is in the pool: {found:?}");
    let known = missing(1006, 1008, GapReason::FillFenced);
    assert!(found.lost.contains(&known), "{found:?}");
    // Whoever had it may live or not: where there are nodes, only time tells.
    let crashed = missing(1008, 1021, GapReason::CrashSkip);
    let may_live = store.is_shared() && found.held.contains(&lease(1008, 1021));
    assert!(may_live || found.lost.contains(&crashed), "{found:?}");
    assert_eq!(granted(&store, pooled("a", 1)).await.range, lease(1021, 1022), "nothing is granted again");
    let second = renewed(&store, "a", first).await;
    drop(store);
    let store = data.open().await;
    assert_eq!(store.pool(scope_id("a")).await.map(|pool| pool.epoch), Ok(second));
    let found = account(&store, scope_id("a")).await;
    assert!(found.lost.contains(&missing(1003, 1006, GapReason::PoolInvalidated)), "{found:?}");
}

//! The part of the conformance suite about settling pools: popped positions, repeated and late reports, and
//! reopening.

use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantRequest, Pool, PoolSettlement, PositionRange, RangeSet, RenewRequest, ScopeId,
};

use super::exercise::{DataSet, grant, positions, range, request, scope_id, series};
use super::outbox::open_two_series;
use super::pools::{account, held_and_missing, missing, pool_request, popped, pushed, renew, server, settle};

/// Even between ranges that a process holds.
pub async fn popped_positions_count_as_handed_out<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let epoch = renew(&store, "a", 0).await;
    grant(&store, request(scope_id("a"), 10)).await;
    grant(&store, pool_request("a", 10)).await;
    grant(&store, pool_request("a", 10)).await;
    grant(&store, GrantRequest { held_from: Some(1006), ..request(scope_id("a"), 10) }).await;
    settle(&store, "a", pushed(epoch, range(1011, 1021))).await;
    settle(&store, "a", pushed(epoch, range(1021, 1031))).await;
    settle(&store, "a", popped(epoch, 1015)).await;
    let held = |pool: Option<PositionRange>| -> Vec<PositionRange> {
        let ends = [Some(range(1006, 1011)), pool, Some(range(1031, 1041))];
        RangeSet::of(ends.into_iter().flatten()).iter().collect()
    };
    let pool = |from| Some(range(from, 1031));
    assert_eq!(held_and_missing(&store, "a").await, (held(pool(1015)), vec![]), "part of the first range");
    settle(&store, "a", popped(epoch, 1012)).await;
    assert_eq!(held_and_missing(&store, "a").await, (held(pool(1015)), vec![]), "a late report");
    settle(&store, "a", popped(epoch, 1023)).await;
    assert_eq!(held_and_missing(&store, "a").await, (held(pool(1023)), vec![]), "part of the second range");
    settle(&store, "a", popped(epoch, bates_pattern::Position::MAX.value())).await;
    assert_eq!(held_and_missing(&store, "a").await, (held(None), vec![]), "everything");
    renew(&store, "a", epoch).await;
    assert_eq!(held_and_missing(&store, "a").await, (held(None), vec![]), "nothing was left to lose");
    // The ranges of the process are lost with it; the popped positions are not.
    drop(store);
    let store = data.open().await;
    grant(&store, request(scope_id("a"), 10)).await;
    let account = account(&store, scope_id("a")).await;
    let lost = account.lost.iter().map(|lost| lost.range);
    let all = RangeSet::of(account.held.iter().copied().chain(lost));
    assert_eq!(all.iter().collect::<Vec<_>>(), [range(1006, 1011), range(1031, 1051)]);
}

pub async fn settling_twice_changes_nothing<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let epoch = renew(&store, "a", 0).await;
    grant(&store, pool_request("a", 10)).await;
    let settlement = PoolSettlement {
        epoch,
        pushed: Some(range(1001, 1006)),
        unused: Some(range(1006, 1011)),
        popped_to: Some(1003),
    };
    let fenced = missing(1006, 1011, GapReason::FillFenced);
    for _ in 0..2 {
        settle(&store, "a", settlement.clone()).await;
        assert_eq!(held_and_missing(&store, "a").await, (vec![range(1003, 1006)], vec![fenced]));
    }
    renew(&store, "a", epoch).await;
    let expected = (vec![], vec![missing(1003, 1006, GapReason::PoolInvalidated), fenced]);
    for _ in 0..2 {
        settle(&store, "a", settlement.clone()).await;
        assert_eq!(held_and_missing(&store, "a").await, expected, "nor after the epoch has ended");
    }
}

pub async fn pops_reported_for_another_epoch_do_not_count<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let first = renew(&store, "a", 0).await;
    let second = renew(&store, "a", first).await;
    grant(&store, pool_request("a", 10)).await;
    settle(&store, "a", pushed(second, range(1001, 1011))).await;
    for other in [first, second + 1] {
        settle(&store, "a", popped(other, 1011)).await;
        assert_eq!(held_and_missing(&store, "a").await, (vec![range(1001, 1011)], vec![]), "{other}");
    }
}

pub async fn raising_a_floor_or_adopting_forgets_the_pool_server<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    grant(&store, request(scope_id("a"), 10)).await;
    let mut epoch = 0;
    for change in ["a floor", "a floor below the cursor", "an adoption"] {
        epoch = renew(&store, "a", epoch).await;
        match change {
            "a floor" => drop(store.raise_floor(scope_id("a"), 2_000, None).await.expect("a floor")),
            "a floor below the cursor" => {
                _ = store.raise_floor(scope_id("a"), 1_500, None).await.expect("a floor");
            }
            _ => drop(store.adopt_positions(scope_id("a"), positions([2_005]), None).await.expect("a write")),
        }
        assert_eq!(store.pool(scope_id("a"), None).await, Ok(Pool { epoch, server: None }), "{change}");
    }
    store.raise_floor(scope_id("b"), 2_000, None).await.expect("a floor");
    store.adopt_positions(scope_id("b"), positions([2_005]), None).await.expect("a write");
    let listed = store.pools(series("document"), None, 10).await.expect("a read");
    assert_eq!(listed.len(), 1, "neither creates a pool");
}

pub async fn a_pool_change_leaves_other_scopes_and_series_alone<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let other = ScopeId { series: series("other"), ..scope_id("a") };
    for at in [scope_id("a"), scope_id("b"), other.clone()] {
        let renewal = RenewRequest { expected_epoch: 0, server: server("s") };
        assert!(store.renew_pool(at.clone(), renewal).await.expect("a write").is_some(), "{at}");
        let grant = grant(&store, GrantRequest { scope_id: at.clone(), ..pool_request("a", 10) }).await;
        store.settle_pool(at, pushed(1, grant.range)).await.expect("a write");
    }
    let again = grant(&store, pool_request("a", 10)).await;
    let unused = PoolSettlement { epoch: 1, unused: Some(again.range), ..PoolSettlement::default() };
    settle(&store, "a", unused).await;
    settle(&store, "a", popped(1, 1005)).await;
    renew(&store, "a", 1).await;
    store.raise_floor(scope_id("a"), 2_000, None).await.expect("a floor");
    store.adopt_positions(scope_id("a"), positions([2_005]), None).await.expect("a write");
    for at in [scope_id("b"), other] {
        let pool = Pool { epoch: 1, server: Some(server("s")) };
        assert_eq!(store.pool(at.clone(), None).await, Ok(pool), "{at}");
        let account = account(&store, at).await;
        assert_eq!((account.held, account.lost), (vec![range(1001, 1011)], vec![]));
    }
}

pub async fn pools_survive_reopening<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let first = renew(&store, "a", 0).await;
    grant(&store, pool_request("a", 20)).await;
    settle(&store, "a", pushed(first, range(1001, 1006))).await;
    settle(&store, "a", popped(first, 1003)).await;
    let unused =
        PoolSettlement { epoch: first, unused: Some(range(1006, 1008)), ..PoolSettlement::default() };
    settle(&store, "a", unused).await;
    drop(store);
    let store = data.open().await;
    assert_eq!(store.pool(scope_id("a"), None).await, Ok(Pool { epoch: first, server: Some(server("s")) }));
    let found = account(&store, scope_id("a")).await;
    assert!(found.held.contains(&range(1003, 1006)), "pushed positions are held: {found:?}");
    let known = missing(1006, 1008, GapReason::FillFenced);
    assert!(found.lost.contains(&known), "{found:?}");
    // A shared store cannot know yet whether the process that filled the pool has crashed.
    let crashed = missing(1008, 1021, GapReason::CrashSkip);
    let may_live = store.is_shared() && found.held.contains(&range(1008, 1021));
    assert!(may_live || found.lost.contains(&crashed), "{found:?}");
    assert_eq!(
        grant(&store, pool_request("a", 1)).await.range,
        range(1021, 1022),
        "nothing is granted again"
    );
    let second = renew(&store, "a", first).await;
    drop(store);
    let store = data.open().await;
    assert_eq!(store.pool(scope_id("a"), None).await.map(|pool| pool.epoch), Ok(second));
    let found = account(&store, scope_id("a")).await;
    assert!(found.lost.contains(&missing(1003, 1006, GapReason::PoolInvalidated)), "{found:?}");
}

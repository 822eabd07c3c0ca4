//! The part of the conformance suite about shared pools: their epochs, and the positions granted to them.

use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    DocumentContent, GapReason, GrantPurpose, GrantRequest, MissingRange, Pool, PoolSettlement,
    PositionRange, Promise, RangeSet, ReleaseOutcome, ReleaseRequest, RenewRequest, ScopeId, ScopePositions,
    ServerIdentity, Store, StoreError,
};

use super::exercise::{DataSet, grant, next, range, request, scope_id, series};
use super::outbox::{assign_request, open_two_series};

pub(super) fn server(run: &str) -> ServerIdentity {
    ServerIdentity { run: run.into(), replication: "r".into() }
}

pub(super) fn pool_request(scope: &str, count: u64) -> GrantRequest {
    GrantRequest { purpose: GrantPurpose::Pool, ..request(scope_id(scope), count) }
}

/// Ends the epoch `seen` and returns the new one.
pub(super) async fn renew(store: &impl Store, scope: &str, seen: u64) -> u64 {
    let renewal = RenewRequest { expected_epoch: seen, server: server("s") };
    store.renew_pool(scope_id(scope), renewal).await.expect("a write").expect("the expected epoch").epoch
}

pub(super) async fn settle(store: &impl Store, scope: &str, settlement: PoolSettlement) {
    store.settle_pool(scope_id(scope), settlement).await.expect("a write");
}

pub(super) fn pushed(epoch: u64, range: PositionRange) -> PoolSettlement {
    PoolSettlement { epoch, pushed: Some(range), ..PoolSettlement::default() }
}

pub(super) fn popped(epoch: u64, to: u64) -> PoolSettlement {
    PoolSettlement { epoch, popped_to: Some(to), ..PoolSettlement::default() }
}

/// The account of a scope. Panics if a position is listed twice.
pub(super) async fn account(store: &impl Store, at: ScopeId) -> ScopePositions {
    let accounts = store.scope_positions(at.series, None, 100).await.expect("a read");
    let mut found = accounts.into_iter().filter(|(scope, _)| *scope == at.scope);
    let (_, account) = found.next().expect("the scope exists");
    let lost = account.lost.iter().map(|lost| lost.range);
    let all: Vec<PositionRange> = account.issued.iter().chain(&account.held).copied().chain(lost).collect();
    let count = all.iter().map(|range| range.count()).sum::<u64>();
    assert_eq!(RangeSet::of(all).count(), count, "a position is listed twice: {account:?}");
    account
}

/// The held ranges of a scope, adjacent ones joined, and its missing ranges.
pub(super) async fn held_and_missing(
    store: &impl Store,
    scope: &str,
) -> (Vec<PositionRange>, Vec<MissingRange>) {
    let account = account(store, scope_id(scope)).await;
    let held = RangeSet::of(account.held.iter().copied()).iter().collect();
    (held, account.missing(Promise::Unique, 1001, None))
}

pub(super) fn missing(from: u64, to: u64, reason: GapReason) -> MissingRange {
    MissingRange { range: range(from, to), reason }
}

pub async fn a_new_pool_is_at_epoch_0_without_server_or_cursor<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    for _ in 0..2 {
        assert_eq!(store.pool(scope_id("a"), None).await, Ok(Pool { epoch: 0, server: None }));
    }
    assert_eq!(renew(&store, "renewed", 0).await, 1);
    for scope in ["a", "renewed"] {
        assert_eq!(next(&store, scope_id(scope)).await, None, "{scope}");
    }
    assert_eq!(store.scopes(series("document"), None, 10).await, Ok(vec![]));
}

pub async fn an_unpinned_series_has_no_pool<D: DataSet>(data: &D) {
    let store = data.open().await;
    let unknown = StoreError::UnknownSeries("document".into());
    let renewal = RenewRequest { expected_epoch: 0, server: server("s") };
    assert_eq!(store.pool(scope_id("a"), None).await, Err(unknown.clone()));
    assert_eq!(store.renew_pool(scope_id("a"), renewal).await, Err(unknown.clone()));
    assert_eq!(store.settle_pool(scope_id("a"), popped(0, 5)).await, Err(unknown));
    assert_eq!(store.pools(series("document"), None, 10).await, Ok(vec![]));
}

pub async fn pools_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    for scope in ["c", "a", "b", "e", "d"] {
        store.pool(scope_id(scope), None).await.expect("a pool");
    }
    store.pool(ScopeId { series: series("other"), ..scope_id("f") }, None).await.expect("a pool");
    let epoch = renew(&store, "b", 0).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.pools(series("document"), after, 2).await.expect("a page");
        assert!(page.len() <= 2);
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        seen.extend(page);
    }
    let keys: Vec<_> = seen.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["scope=a", "scope=b", "scope=c", "scope=d", "scope=e"]);
    assert_eq!(seen[1].1, Pool { epoch, server: Some(server("s")) });
    assert_eq!(seen[2].1, Pool::default());
}

pub async fn positions_granted_to_a_pool_are_held_and_granted_once<D: DataSet>(data: &D) {
    let store = Arc::new(open_two_series(data).await);
    let purposes = [
        GrantPurpose::Hold,
        GrantPurpose::Pool,
        GrantPurpose::HandOut,
        GrantPurpose::Pool,
        GrantPurpose::Issue,
    ];
    let callers: Vec<_> = (0..50)
        .map(|caller| {
            let (store, purpose) = (store.clone(), purposes[caller % purposes.len()]);
            tokio::spawn(async move {
                store
                    .assign(assign_request("a", DocumentContent::Document("{}".into())))
                    .await
                    .expect("a number");
                (purpose, grant(&*store, GrantRequest { purpose, ..request(scope_id("a"), 7) }).await)
            })
        })
        .collect();
    let (mut all, mut versions, mut of_pools) = (Vec::new(), Vec::new(), Vec::new());
    for caller in callers {
        let (purpose, grant) = caller.await.expect("a caller ends");
        all.push(grant.range);
        versions.push(grant.version);
        of_pools.extend((purpose == GrantPurpose::Pool).then_some(grant.range));
    }
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 50, "every write has its own version");
    let account = account(&*store, scope_id("a")).await;
    assert_eq!(account.next, 1001 + 50 * 7 + 50, "grants leave no hole");
    assert_eq!(RangeSet::of(all).count(), 50 * 7, "no position is granted twice");
    let (held, issued) =
        (RangeSet::of(account.held.iter().copied()), RangeSet::of(account.issued.iter().copied()));
    assert!(RangeSet::of(of_pools).difference(&held).is_empty(), "{account:?}");
    assert_eq!(issued.count(), 50 + 10 * 7);
}

/// A dispenser and a filler use the same scope at once.
pub async fn a_pool_does_not_change_the_ranges_that_a_process_holds<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let epoch = renew(&store, "a", 0).await;
    grant(&store, request(scope_id("a"), 10)).await;
    grant(&store, pool_request("a", 10)).await;
    assert_eq!(held_and_missing(&store, "a").await, (vec![range(1001, 1021)], vec![]));
    let last = grant(&store, GrantRequest { held_from: Some(1008), ..request(scope_id("a"), 10) }).await;
    assert_eq!(
        held_and_missing(&store, "a").await,
        (vec![range(1008, 1031)], vec![]),
        "positions below 1008 were handed out"
    );
    let unused = PoolSettlement { epoch, unused: Some(range(1011, 1021)), ..PoolSettlement::default() };
    settle(&store, "a", unused).await;
    let fenced = missing(1011, 1021, GapReason::FillFenced);
    assert_eq!(
        held_and_missing(&store, "a").await,
        (vec![range(1008, 1011), range(1021, 1031)], vec![fenced])
    );
    grant(&store, pool_request("a", 10)).await;
    let release = ReleaseRequest {
        scope_id: scope_id("a"),
        range: range(1025, 1031),
        version: last.version,
        lost: vec![range(1009, 1011)],
    };
    assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap), "a grant to the pool came in between");
    let lost = [missing(1009, 1011, GapReason::LeaseLost), fenced, missing(1025, 1031, GapReason::LeaseLost)];
    assert_eq!(
        held_and_missing(&store, "a").await,
        (vec![range(1031, 1041)], lost.to_vec()),
        "the pool keeps its range"
    );
}

pub async fn concurrent_renewals_end_an_epoch_once<D: DataSet>(data: &D) {
    let store = Arc::new(open_two_series(data).await);
    for seen in 0..3 {
        let renewals: Vec<_> = (0..16)
            .map(|caller| {
                let (store, run) = (store.clone(), format!("s{caller}"));
                let renewal = RenewRequest { expected_epoch: seen, server: server(&run) };
                tokio::spawn(async move { store.renew_pool(scope_id("a"), renewal).await.expect("a write") })
            })
            .collect();
        let mut winners = Vec::new();
        for renewal in renewals {
            winners.extend(renewal.await.expect("a caller ends"));
        }
        let [winner] = &*winners else { panic!("epoch {seen} was ended by {winners:?}") };
        assert_eq!(winner.epoch, seen + 1);
        assert_eq!(
            store.pool(scope_id("a"), None).await.as_ref(),
            Ok(winner),
            "the winner got the stored pool"
        );
    }
}

pub async fn an_ended_epoch_is_not_renewed_again<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    for seen in 0..3 {
        let renewal = RenewRequest { expected_epoch: seen, server: server("s") };
        let pool = Pool { epoch: seen + 1, server: Some(server("s")) };
        assert_eq!(store.renew_pool(scope_id("a"), renewal).await, Ok(Some(pool)));
    }
    let late = RenewRequest { expected_epoch: 2, server: server("late") };
    assert_eq!(store.renew_pool(scope_id("a"), late).await, Ok(None));
    let pool = Pool { epoch: 3, server: Some(server("s")) };
    assert_eq!(store.pool(scope_id("a"), None).await, Ok(pool), "the late renewal wrote nothing");
}

pub async fn pushed_positions_are_lost_with_their_epoch_even_if_reported_late<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let first = renew(&store, "a", 0).await;
    grant(&store, pool_request("a", 20)).await;
    settle(&store, "a", pushed(first, range(1001, 1011))).await;
    assert_eq!(held_and_missing(&store, "a").await, (vec![range(1001, 1021)], vec![]));
    let second = renew(&store, "a", first).await;
    let lost = missing(1001, 1011, GapReason::PoolInvalidated);
    assert_eq!(held_and_missing(&store, "a").await, (vec![range(1011, 1021)], vec![lost]));
    settle(&store, "a", pushed(first, range(1011, 1021))).await;
    let all = missing(1001, 1021, GapReason::PoolInvalidated);
    assert_eq!(held_and_missing(&store, "a").await, (vec![], vec![all]), "reported late");
    grant(&store, pool_request("a", 5)).await;
    settle(&store, "a", pushed(second, range(1021, 1026))).await;
    assert_eq!(
        held_and_missing(&store, "a").await,
        (vec![range(1021, 1026)], vec![all]),
        "the new epoch keeps its positions"
    );
}

/// Another filler may have granted positions that go into the new epoch.
pub async fn granted_positions_that_were_not_reported_outlive_an_epoch<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let first = renew(&store, "a", 0).await;
    grant(&store, pool_request("a", 10)).await;
    let second = renew(&store, "a", first).await;
    assert_eq!(held_and_missing(&store, "a").await, (vec![range(1001, 1011)], vec![]));
    settle(&store, "a", pushed(second, range(1001, 1011))).await;
    settle(&store, "a", popped(second, 1011)).await;
    assert_eq!(held_and_missing(&store, "a").await, (vec![], vec![]));
}

pub async fn positions_that_were_not_pushed_are_fenced<D: DataSet>(data: &D) {
    let store = open_two_series(data).await;
    let epoch = renew(&store, "a", 0).await;
    grant(&store, pool_request("a", 10)).await;
    grant(&store, pool_request("a", 10)).await;
    let half = PoolSettlement {
        epoch,
        pushed: Some(range(1011, 1014)),
        unused: Some(range(1014, 1021)),
        popped_to: None,
    };
    settle(&store, "a", half).await;
    let fenced = missing(1014, 1021, GapReason::FillFenced);
    assert_eq!(held_and_missing(&store, "a").await, (vec![range(1001, 1014)], vec![fenced]));
    let middle = PoolSettlement { epoch, unused: Some(range(1004, 1006)), ..PoolSettlement::default() };
    settle(&store, "a", middle).await;
    let both = vec![missing(1004, 1006, GapReason::FillFenced), fenced];
    assert_eq!(held_and_missing(&store, "a").await, (vec![range(1001, 1004), range(1006, 1014)], both));
    let late = PoolSettlement { epoch: 0, unused: Some(range(1001, 1004)), ..PoolSettlement::default() };
    settle(&store, "a", late).await;
    let both = vec![missing(1001, 1006, GapReason::FillFenced), fenced];
    assert_eq!(
        held_and_missing(&store, "a").await,
        (vec![range(1006, 1014)], both),
        "an ended epoch is accepted too"
    );
}

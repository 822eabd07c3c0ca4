//! The conformance suite of pools: what every store must know of them, and of the positions that were granted to them.

use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{
    DocumentContent, GapReason, GrantPurpose, GrantRequest, MissingRange, Pool, PoolSettlement,
    PositionRange, Promise, RangeSet, Reconciliation, ReleaseOutcome, ReleaseRequest, RenewRequest, ScopeId,
    ServerIdentity, Store, StoreError,
};

use super::exercise::{DataSet, definition, granted, lease, next, scope_id, series, want};
use super::outbox::numbered;

pub(super) async fn opened<D: DataSet>(data: &D) -> D::Store {
    let store = data.open().await;
    for name in ["document", "other"] {
        store.pin(definition(name), None).await.expect("a first pin");
    }
    store
}

pub(super) fn server(run: &str) -> ServerIdentity {
    ServerIdentity { run: run.into(), replication: "r".into() }
}

pub(super) fn pooled(scope: &str, count: u64) -> GrantRequest {
    GrantRequest { purpose: GrantPurpose::Pool, ..want(scope_id(scope), count) }
}

/// Ends an epoch, and answers with the one that begins.
pub(super) async fn renewed(store: &impl Store, scope: &str, seen: u64) -> u64 {
    let renewal = RenewRequest { expected_epoch: seen, server: server("s") };
    store.renew_pool(scope_id(scope), renewal).await.expect("a write").expect("the epoch was seen").epoch
}

pub(super) async fn settle(store: &impl Store, scope: &str, settling: PoolSettlement) {
    store.settle_pool(scope_id(scope), settling).await.expect("a write");
}

pub(super) fn pushed(epoch: u64, range: PositionRange) -> PoolSettlement {
    PoolSettlement { epoch, pushed: Some(range), ..PoolSettlement::default() }
}

pub(super) fn popped(epoch: u64, to: u64) -> PoolSettlement {
    PoolSettlement { epoch, popped_to: Some(to), ..PoolSettlement::default() }
}

/// What a scope has, after a look whether nothing of it is in two places.
pub(super) async fn account(store: &impl Store, at: ScopeId) -> Reconciliation {
    let accounts = store.reconciliations(at.series, None, 100).await.expect("a read");
    let mut found = accounts.into_iter().filter(|(scope, _)| *scope == at.scope);
    let (_, account) = found.next().expect("the scope is there");
    let lost = account.lost.iter().map(|lost| lost.range);
    let all: Vec<PositionRange> = account.issued.iter().chain(&account.held).copied().chain(lost).collect();
    let count = all.iter().map(|range| range.count()).sum::<u64>();
    assert_eq!(RangeSet::of(all).count(), count, "a position is in two places: {account:?}");
    account
}

/// What is held, and what is lost, of a scope; neighbours joined.
pub(super) async fn standing(store: &impl Store, scope: &str) -> (Vec<PositionRange>, Vec<MissingRange>) {
    let account = account(store, scope_id(scope)).await;
    let held = RangeSet::of(account.held.iter().copied()).iter().collect();
    (held, account.missing(Promise::Unique, 1001, None))
}

pub(super) fn missing(from: u64, to: u64, reason: GapReason) -> MissingRange {
    MissingRange { range: lease(from, to), reason }
}

pub async fn a_pool_begins_at_epoch_0_on_no_server_and_makes_no_cursor<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for _ in 0..2 {
        assert_eq!(store.pool(scope_id("a")).await, Ok(Pool { epoch: 0, server: None }));
    }
    assert_eq!(renewed(&store, "unasked", 0).await, 1);
    for scope in ["a", "unasked"] {
        assert_eq!(next(&store, scope_id(scope)).await, None, "{scope}");
    }
    assert_eq!(store.scopes(series("document"), None, 10).await, Ok(vec![]));
}

pub async fn a_series_that_was_never_pinned_has_no_pool<D: DataSet>(data: &D) {
    let store = data.open().await;
    let unknown = StoreError::UnknownSeries("document".into());
    let renewal = RenewRequest { expected_epoch: 0, server: server("s") };
    assert_eq!(store.pool(scope_id("a")).await, Err(unknown.clone()));
    assert_eq!(store.renew_pool(scope_id("a"), renewal).await, Err(unknown.clone()));
    assert_eq!(store.settle_pool(scope_id("a"), popped(0, 5)).await, Err(unknown));
    assert_eq!(store.pools(series("document"), None, 10).await, Ok(vec![]));
}

pub async fn pools_are_listed_in_pages<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for scope in ["c", "a", "b", "e", "d"] {
        store.pool(scope_id(scope)).await.expect("a pool");
    }
    store.pool(ScopeId { series: series("other"), ..scope_id("f") }).await.expect("a pool");
    let epoch = renewed(&store, "b", 0).await;
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

pub async fn what_is_granted_to_a_pool_is_nobody_elses_and_held<D: DataSet>(data: &D) {
    let store = Arc::new(opened(data).await);
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
                store.assign(numbered("a", DocumentContent::Document("{}".into()))).await.expect("a number");
                (purpose, granted(&*store, GrantRequest { purpose, ..want(scope_id("a"), 7) }).await)
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
    assert_eq!(versions.len(), 50, "every write has a version of its own");
    let account = account(&*store, scope_id("a")).await;
    assert_eq!(account.next, 1001 + 50 * 7 + 50, "no hole");
    assert_eq!(RangeSet::of(all).count(), 50 * 7, "nothing twice");
    let (held, issued) =
        (RangeSet::of(account.held.iter().copied()), RangeSet::of(account.issued.iter().copied()));
    assert!(RangeSet::of(of_pools).difference(&held).is_empty(), "{account:?}");
    assert_eq!(issued.count(), 50 + 10 * 7);
}

/// A dispenser and a filler have the same scope at once.
pub async fn a_pool_leaves_what_a_process_holds_as_it_is<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let epoch = renewed(&store, "a", 0).await;
    granted(&store, want(scope_id("a"), 10)).await;
    granted(&store, pooled("a", 10)).await;
    assert_eq!(standing(&store, "a").await, (vec![lease(1001, 1021)], vec![]));
    let last = granted(&store, GrantRequest { held_from: Some(1008), ..want(scope_id("a"), 10) }).await;
    assert_eq!(standing(&store, "a").await, (vec![lease(1008, 1031)], vec![]), "what lies below was used");
    let unused = PoolSettlement { epoch, unused: Some(lease(1011, 1021)), ..PoolSettlement::default() };
    settle(&store, "a", unused).await;
    let fenced = missing(1011, 1021, GapReason::FillFenced);
    assert_eq!(standing(&store, "a").await, (vec![lease(1008, 1011), lease(1021, 1031)], vec![fenced]));
    granted(&store, pooled("a", 10)).await;
    let tail = ReleaseRequest {
        scope_id: scope_id("a"),
        range: lease(1025, 1031),
        version: last.version,
        lost: vec![lease(1009, 1011)],
    };
    assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Gap), "the pool was granted something since");
    let gone = [missing(1009, 1011, GapReason::LeaseLost), fenced, missing(1025, 1031, GapReason::LeaseLost)];
    assert_eq!(standing(&store, "a").await, (vec![lease(1031, 1041)], gone.to_vec()), "but the pool's own");
}

pub async fn an_epoch_is_ended_once_however_many_try_together<D: DataSet>(data: &D) {
    let store = Arc::new(opened(data).await);
    for seen in 0..3 {
        let tries: Vec<_> = (0..16)
            .map(|caller| {
                let (store, run) = (store.clone(), format!("s{caller}"));
                let renewal = RenewRequest { expected_epoch: seen, server: server(&run) };
                tokio::spawn(async move { store.renew_pool(scope_id("a"), renewal).await.expect("a write") })
            })
            .collect();
        let mut winners = Vec::new();
        for tried in tries {
            winners.extend(tried.await.expect("a caller ends"));
        }
        let [winner] = &*winners else { panic!("{seen}: one of them, not {winners:?}") };
        assert_eq!(winner.epoch, seen + 1);
        assert_eq!(store.pool(scope_id("a")).await.as_ref(), Ok(winner), "as the one that did it said");
    }
}

pub async fn an_epoch_that_has_ended_is_not_ended_again<D: DataSet>(data: &D) {
    let store = opened(data).await;
    for seen in 0..3 {
        let renewal = RenewRequest { expected_epoch: seen, server: server("s") };
        let pool = Pool { epoch: seen + 1, server: Some(server("s")) };
        assert_eq!(store.renew_pool(scope_id("a"), renewal).await, Ok(Some(pool)));
    }
    let late = RenewRequest { expected_epoch: 2, server: server("late") };
    assert_eq!(store.renew_pool(scope_id("a"), late).await, Ok(None));
    let pool = Pool { epoch: 3, server: Some(server("s")) };
    assert_eq!(store.pool(scope_id("a")).await, Ok(pool), "and nothing is written");
}

pub async fn what_was_pushed_is_lost_with_its_epoch_whenever_that_is_told<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let first = renewed(&store, "a", 0).await;
    granted(&store, pooled("a", 20)).await;
    settle(&store, "a", pushed(first, lease(1001, 1011))).await;
    assert_eq!(standing(&store, "a").await, (vec![lease(1001, 1021)], vec![]));
    let second = renewed(&store, "a", first).await;
    let lost = missing(1001, 1011, GapReason::PoolInvalidated);
    assert_eq!(standing(&store, "a").await, (vec![lease(1011, 1021)], vec![lost]));
    settle(&store, "a", pushed(first, lease(1011, 1021))).await;
    let all = missing(1001, 1021, GapReason::PoolInvalidated);
    assert_eq!(standing(&store, "a").await, (vec![], vec![all]), "told late");
    granted(&store, pooled("a", 5)).await;
    settle(&store, "a", pushed(second, lease(1021, 1026))).await;
    assert_eq!(
        standing(&store, "a").await,
        (vec![lease(1021, 1026)], vec![all]),
        "the new one holds its own"
    );
}

/// Another filler may have granted positions that go into the new epoch.
pub async fn what_was_granted_and_not_told_of_outlives_an_epoch<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let first = renewed(&store, "a", 0).await;
    granted(&store, pooled("a", 10)).await;
    let second = renewed(&store, "a", first).await;
    assert_eq!(standing(&store, "a").await, (vec![lease(1001, 1011)], vec![]));
    settle(&store, "a", pushed(second, lease(1001, 1011))).await;
    settle(&store, "a", popped(second, 1011)).await;
    assert_eq!(standing(&store, "a").await, (vec![], vec![]));
}

pub async fn what_was_not_pushed_is_fenced<D: DataSet>(data: &D) {
    let store = opened(data).await;
    let epoch = renewed(&store, "a", 0).await;
    granted(&store, pooled("a", 10)).await;
    granted(&store, pooled("a", 10)).await;
    let half = PoolSettlement {
        epoch,
        pushed: Some(lease(1011, 1014)),
        unused: Some(lease(1014, 1021)),
        popped_to: None,
    };
    settle(&store, "a", half).await;
    let fenced = missing(1014, 1021, GapReason::FillFenced);
    assert_eq!(standing(&store, "a").await, (vec![lease(1001, 1014)], vec![fenced]));
    let middle = PoolSettlement { epoch, unused: Some(lease(1004, 1006)), ..PoolSettlement::default() };
    settle(&store, "a", middle).await;
    let both = vec![missing(1004, 1006, GapReason::FillFenced), fenced];
    assert_eq!(standing(&store, "a").await, (vec![lease(1001, 1004), lease(1006, 1014)], both));
    let late = PoolSettlement { epoch: 0, unused: Some(lease(1001, 1004)), ..PoolSettlement::default() };
    settle(&store, "a", late).await;
    let both = vec![missing(1001, 1006, GapReason::FillFenced), fenced];
    assert_eq!(standing(&store, "a").await, (vec![lease(1006, 1014)], both), "of whatever epoch it was");
}

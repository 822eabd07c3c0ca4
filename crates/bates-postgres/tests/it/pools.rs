//! Shared pools on a shared store: cut connections, dead nodes, and a store that was stopped.

use std::time::Duration;

use bates_core::StoreError;
use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantPurpose, MissingRange, Pool, PoolSettlement, Position, PositionRange, RenewRequest,
    ScopePositions, ServerIdentity,
};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::proxy::Cut;
use super::unknown_commits::{SHORT, behind_proxy};
use super::{connect, open_store, pin_series, request, scope_id};

fn range(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

fn renewal(seen: u64) -> RenewRequest {
    RenewRequest {
        expected_epoch: seen,
        server: ServerIdentity { run: "run".into(), replication: "replication".into() },
    }
}

async fn reconciliation(store: &PostgresStore) -> ScopePositions {
    store.scope_positions("document".parse().unwrap(), None, 1).await.unwrap().remove(0).1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_store_begins_no_epoch_and_trusts_no_redis_server_afterwards() {
    let server = PrivatePostgres::start().unwrap();
    let store = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pin_series(&store).await;
    let begun = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute("UPDATE bates.store SET stopped = 'a test'").await.unwrap();
    let refused = store.renew_pool(scope_id("a"), renewal(1)).await;
    assert!(
        matches!(&refused, Err(StoreError::Poisoned(reason)) if reason.starts_with("a test")),
        "{refused:?}"
    );
    assert_eq!(store.pool(scope_id("a"), None).await.ok(), begun, "the refused renewal changed nothing");
    store.accept(None).await.unwrap();
    assert_eq!(store.pool(scope_id("a"), None).await, Ok(Pool { epoch: 1, server: None }));
    assert!(store.renew_pool(scope_id("a"), renewal(1)).await.unwrap().is_some());
}

/// A floor or an adopted position ends the trust in the pools of its own scope.
#[tokio::test(flavor = "multi_thread")]
async fn a_floor_or_an_adopted_position_leaves_the_pools_of_other_scopes_trusted() {
    let server = PrivatePostgres::start().unwrap();
    let store = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pin_series(&store).await;
    for scope in ["a", "b", "c"] {
        store.renew_pool(scope_id(scope), renewal(0)).await.unwrap().unwrap();
    }
    store.adopt_positions(scope_id("a"), vec![Position::new(5).unwrap()], None).await.unwrap();
    store.raise_floor(scope_id("b"), 7, None).await.unwrap();
    for (scope, trusted) in [("a", None), ("b", None), ("c", Some(renewal(0).server))] {
        assert_eq!(
            store.pool(scope_id(scope), None).await,
            Ok(Pool { epoch: 1, server: trusted }),
            "{scope}"
        );
    }
    assert!(store.renew_pool(scope_id("a"), renewal(1)).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_whose_answer_was_lost_belongs_to_no_filler_and_the_next_one_replaces_it() {
    let (_server, proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    store.pool(scope_id("a"), None).await.unwrap();
    proxy.cut(Cut::Before);
    let renewed = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap();
    assert_eq!(renewed.map(|pool| pool.epoch), Some(1), "a renewal that was not committed is tried again");
    proxy.cut(Cut::After);
    assert_eq!(store.renew_pool(scope_id("a"), renewal(1)).await, Ok(None));
    let pool = store.pool(scope_id("a"), None).await.unwrap();
    assert_eq!(pool.epoch, 2, "it was committed");
    let renewed = store.renew_pool(scope_id("a"), renewal(pool.epoch)).await.unwrap();
    assert_eq!(renewed.map(|pool| pool.epoch), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_settled_once_however_the_commit_is_cut() {
    let (_server, proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    let epoch = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap().unwrap().epoch;
    for (cut, from) in [(Cut::Before, 1), (Cut::After, 11)] {
        let granted = store.grant(request("a", 10, GrantPurpose::Pool)).await.unwrap().range;
        assert_eq!(granted, range(from, from + 10));
        let settlement = PoolSettlement {
            epoch,
            pushed: Some(range(from, from + 4)),
            unused: Some(range(from + 4, from + 10)),
            popped_to: Some(from + 1),
        };
        proxy.cut(cut);
        store.settle_pool(scope_id("a"), settlement).await.unwrap();
        let ScopePositions { held, lost, .. } = reconciliation(&store).await;
        assert_eq!(held, [range(from + 1, from + 4)], "{cut:?}");
        let fenced = MissingRange { range: range(from + 4, from + 10), reason: GapReason::FillFenced };
        assert!(lost.contains(&fenced), "{cut:?}: {lost:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_grant_not_answered_in_time_is_burned_and_not_held() {
    let (server, proxy, store) = behind_proxy(SHORT).await;
    store.grant(request("a", 10, GrantPurpose::Pool)).await.unwrap();
    proxy.cut_and_close(Cut::After);
    assert!(store.grant(request("a", 10, GrantPurpose::Pool)).await.is_err());
    proxy.open();
    let patient = Settings { timeout: Duration::from_mins(1), ..Settings::default() };
    let other = open_store(&server.url(), patient, OpenMode::Existing).await.unwrap();
    let reconciliation = loop {
        let reconciliation = reconciliation(&other).await;
        if !reconciliation.lost.is_empty() {
            break reconciliation;
        }
    };
    assert_eq!(reconciliation.lost, [MissingRange { range: range(11, 21), reason: GapReason::Burned }]);
    assert_eq!(reconciliation.held, [range(1, 11)], "the node holds the range that was answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_node_loses_the_positions_that_it_did_not_push_to_the_pool() {
    let server = PrivatePostgres::start().unwrap();
    let store = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pin_series(&store).await;
    let epoch = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap().unwrap().epoch;
    store.grant(request("a", 10, GrantPurpose::Pool)).await.unwrap();
    let settlement = PoolSettlement { epoch, pushed: Some(range(1, 5)), ..PoolSettlement::default() };
    store.settle_pool(scope_id("a"), settlement).await.unwrap();
    drop(store);
    let client = connect(&server.url()).await;
    let long_ago = "UPDATE bates.node SET seen_at = now() - interval '1 hour';
                    UPDATE bates.last_commit SET committed_at = now() - interval '1 hour'";
    client.batch_execute(long_ago).await.unwrap();
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let ScopePositions { held, lost, .. } = reconciliation(&other).await;
    assert_eq!(held, [range(1, 5)]);
    assert_eq!(lost, [MissingRange { range: range(5, 11), reason: GapReason::CrashSkip }]);
}

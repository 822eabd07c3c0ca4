//! Shared pools on a shared store: what only happens where connections are cut, nodes die and operators stop it all.

use std::time::Duration;

use bates_core::StoreError;
use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantPurpose, MissingRange, Pool, PoolSettlement, Position, PositionRange, Reconciliation,
    RenewRequest, ServerIdentity,
};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::proxy::Cut;
use super::unknown::{SHORT, behind_proxy};
use super::{connect, opened, pinned, scope_id, want};

fn lease(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

fn renewal(seen: u64) -> RenewRequest {
    RenewRequest {
        expected_epoch: seen,
        server: ServerIdentity { run: "run".into(), replication: "replication".into() },
    }
}

async fn account(store: &PostgresStore) -> Reconciliation {
    store.reconciliations("document".parse().unwrap(), None, 1).await.unwrap().remove(0).1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_stopped_begins_no_epoch_and_trusts_no_server_afterwards() {
    let server = PrivatePostgres::start().unwrap();
    let store = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pinned(&store).await;
    let begun = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute("UPDATE bates.store SET stopped = 'a test'").await.unwrap();
    let refused = store.renew_pool(scope_id("a"), renewal(1)).await;
    assert!(matches!(&refused, Err(StoreError::Poisoned(told)) if told.starts_with("a test")), "{refused:?}");
    assert_eq!(store.pool(scope_id("a")).await.ok(), begun, "nothing is written");
    store.accept().await.unwrap();
    assert_eq!(store.pool(scope_id("a")).await, Ok(Pool { epoch: 1, server: None }));
    assert!(store.renew_pool(scope_id("a"), renewal(1)).await.unwrap().is_some());
}

/// What is adopted forgets the pools of its own scopes.
#[tokio::test(flavor = "multi_thread")]
async fn floors_and_adopted_positions_leave_the_pools_of_other_scopes_trusted() {
    let server = PrivatePostgres::start().unwrap();
    let store = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pinned(&store).await;
    for scope in ["a", "b", "c"] {
        store.renew_pool(scope_id(scope), renewal(0)).await.unwrap().unwrap();
    }
    store.adopt_positions(scope_id("a"), vec![Position::new(5).unwrap()]).await.unwrap();
    store.raise_floor(scope_id("b"), 7).await.unwrap();
    for (scope, trusted) in [("a", None), ("b", None), ("c", Some(renewal(0).server))] {
        assert_eq!(store.pool(scope_id(scope)).await, Ok(Pool { epoch: 1, server: trusted }), "{scope}");
    }
    assert!(store.renew_pool(scope_id("a"), renewal(1)).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_whose_answer_was_lost_is_nobodys_and_the_next_one_ends_it() {
    let (_server, proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    store.pool(scope_id("a")).await.unwrap();
    proxy.cut(Cut::Before);
    let renewed = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap();
    assert_eq!(renewed.map(|pool| pool.epoch), Some(1), "what was not committed is tried again");
    proxy.cut(Cut::After);
    assert_eq!(store.renew_pool(scope_id("a"), renewal(1)).await, Ok(None));
    let pool = store.pool(scope_id("a")).await.unwrap();
    assert_eq!(pool.epoch, 2, "it was committed");
    let renewed = store.renew_pool(scope_id("a"), renewal(pool.epoch)).await.unwrap();
    assert_eq!(renewed.map(|pool| pool.epoch), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_positions_is_written_once_however_its_commit_is_cut() {
    let (_server, proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    let epoch = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap().unwrap().epoch;
    for (cut, from) in [(Cut::Before, 1), (Cut::After, 11)] {
        let granted = store.grant(want("a", 10, GrantPurpose::Pool)).await.unwrap().range;
        assert_eq!(granted, lease(from, from + 10));
        let settling = PoolSettlement {
            epoch,
            pushed: Some(lease(from, from + 4)),
            unused: Some(lease(from + 4, from + 10)),
            popped_to: Some(from + 1),
        };
        proxy.cut(cut);
        store.settle_pool(scope_id("a"), settling).await.unwrap();
        let Reconciliation { held, lost, .. } = account(&store).await;
        assert_eq!(held, [lease(from + 1, from + 4)], "{cut:?}");
        let fenced = MissingRange { range: lease(from + 4, from + 10), reason: GapReason::FillFenced };
        assert!(lost.contains(&fenced), "{cut:?}: {lost:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_granted_to_a_pool_and_not_told_in_time_is_burned_and_not_in_it() {
    let (server, proxy, store) = behind_proxy(SHORT).await;
    store.grant(want("a", 10, GrantPurpose::Pool)).await.unwrap();
    proxy.cut_and_close(Cut::After);
    assert!(store.grant(want("a", 10, GrantPurpose::Pool)).await.is_err());
    proxy.open();
    let patient = Settings { patience: Duration::from_mins(1), ..Settings::default() };
    let other = opened(&server.url(), patient, OpenMode::Existing).await.unwrap();
    let account = loop {
        let account = account(&other).await;
        if !account.lost.is_empty() {
            break account;
        }
    };
    assert_eq!(account.lost, [MissingRange { range: lease(11, 21), reason: GapReason::Burned }]);
    assert_eq!(account.held, [lease(1, 11)], "what was told is the node's");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_node_had_for_a_pool_is_lost_and_what_it_pushed_is_in_the_pool() {
    let server = PrivatePostgres::start().unwrap();
    let store = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    pinned(&store).await;
    let epoch = store.renew_pool(scope_id("a"), renewal(0)).await.unwrap().unwrap().epoch;
    store.grant(want("a", 10, GrantPurpose::Pool)).await.unwrap();
    let settling = PoolSettlement { epoch, pushed: Some(lease(1, 5)), ..PoolSettlement::default() };
    store.settle_pool(scope_id("a"), settling).await.unwrap();
    drop(store);
    let client = connect(&server.url()).await;
    let long_ago = "UPDATE bates.node SET seen_at = now() - interval '1 hour';
                    UPDATE bates.last_commit SET committed_at = now() - interval '1 hour'";
    client.batch_execute(long_ago).await.unwrap();
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let Reconciliation { held, lost, .. } = account(&other).await;
    assert_eq!(held, [lease(1, 5)]);
    assert_eq!(lost, [MissingRange { range: lease(5, 11), reason: GapReason::CrashSkip }]);
}

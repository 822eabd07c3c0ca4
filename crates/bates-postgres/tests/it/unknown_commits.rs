//! Commits of unknown outcome: the connection is cut during a commit. The store looks such a commit up, and
//! issues nothing twice.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    GrantError, GrantPurpose, GrantRequest, PositionRange, ReleaseOutcome, ReleaseRequest, StoreError,
};
use bates_postgres::{OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::proxy::{Cut, Proxy};
use super::{connect, open_store, pin_series, request, scope_id};

/// A timeout that tests can outlast, but long enough for one commit on a busy machine.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// A server, a proxy in front of it, and a store behind the proxy. Another store creates the tables first,
/// because that can take longer than `timeout`.
pub(crate) async fn behind_proxy(timeout: Duration) -> (PrivatePostgres, Proxy, PostgresStore) {
    let server = PrivatePostgres::start().unwrap();
    let patient = Settings { timeout: Duration::from_mins(1), ..Settings::default() };
    pin_series(&open_store(&server.url(), patient, OpenMode::New).await.unwrap()).await;
    let proxy = Proxy::start(server.port()).await;
    let url = server.url().replace(&server.port().to_string(), &proxy.port.to_string());
    let settings = Settings { timeout, ..Settings::default() };
    loop {
        match open_store(&url, settings, OpenMode::Existing).await {
            Ok(store) => return (server, proxy, store),
            // The database was too slow; try again.
            Err(OpenError::Database { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn range(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_commit_is_looked_up_and_repeated_only_if_it_did_not_happen() {
    let (server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    let mut next = 1;
    for purpose in [GrantPurpose::Hold, GrantPurpose::HandOut, GrantPurpose::Issue, GrantPurpose::Pool] {
        for cut in [Cut::After, Cut::Before] {
            for scope in ["a", "b", "a"] {
                proxy.cut(cut);
                let granted = store.grant(request(scope, 3, purpose)).await.unwrap();
                if scope == "a" {
                    assert_eq!(
                        granted.range,
                        range(next, next + 3),
                        "{purpose:?} {cut:?}: no gap and no repeat"
                    );
                    next += 3;
                }
            }
        }
    }
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![range(25, 37)]));
    let client = connect(&server.url()).await;
    let burned = client.query_one("SELECT count(*) FROM bates.burned", &[]).await.unwrap();
    assert_eq!(burned.get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_released_once_however_its_commit_is_cut() {
    let (_server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    for cut in [Cut::After, Cut::Before] {
        let granted = store.grant(request("a", 32, GrantPurpose::Hold)).await.unwrap();
        assert_eq!(granted.range, range(1, 33));
        proxy.cut(cut);
        let release = ReleaseRequest {
            scope_id: scope_id("a"),
            range: granted.range,
            version: granted.version,
            lost: vec![],
        };
        assert_eq!(store.release(release.clone()).await, Ok(ReleaseOutcome::Returned), "{cut:?}");
        assert_eq!(store.release(release).await, Ok(ReleaseOutcome::Gap), "{cut:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_cannot_be_looked_up_in_time_is_burned_and_recorded_later() {
    let (server, proxy, store) = behind_proxy(SHORT).await;
    store.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap();
    proxy.cut_and_close(Cut::After);
    let more = GrantRequest { held_from: Some(1), ..request("a", 10, GrantPurpose::Hold) };
    let refused = store.grant(more).await.unwrap_err();
    let GrantError::Store(StoreError::Unavailable(reason)) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("whether the commit succeeded is unknown"), "{reason}");
    proxy.open();
    let client = connect(&server.url()).await;
    let burned = loop {
        let rows = client.query("SELECT scope, first, last FROM bates.burned", &[]).await.unwrap();
        if let Some(row) = rows.first() {
            break (row.get::<_, String>(0), row.get::<_, i64>(1), row.get::<_, i64>(2));
        }
    };
    assert_eq!(burned, ("scope=a".to_owned(), 11, 20));
    let held = client.query("SELECT first, last FROM bates.held_range", &[]).await.unwrap();
    let held: Vec<(i64, i64)> = held.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(held, [(1, 10)], "a burned range is not held as well");
    let after = store.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap();
    assert_eq!(after.range, range(21, 31), "the burned range is never issued");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gapless_grant_waits_until_its_commit_is_known() {
    let (_server, proxy, store) = behind_proxy(SHORT).await;
    let store = std::sync::Arc::new(store);
    for (cut, expected) in [(Cut::After, true), (Cut::Before, false)] {
        proxy.cut_and_close(cut);
        let node = store.clone();
        let waiting = tokio::spawn(async move { node.grant(request("a", 1, GrantPurpose::Issue)).await });
        proxy.has_cut().await;
        // Each failure takes as long as the timeout; the grant still waits afterwards.
        for _ in 0..3 {
            assert!(matches!(store.cursor(scope_id("a")).await, Err(StoreError::Unavailable(_))));
        }
        assert!(!waiting.is_finished(), "neither answered nor burned");
        proxy.open();
        let granted = waiting.await.unwrap();
        assert_eq!(granted.is_ok(), expected, "{cut:?}: {granted:?}");
    }
    assert_eq!(store.grant(request("a", 1, GrantPurpose::Issue)).await.unwrap().range, range(2, 3));
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![range(1, 3)]), "no gap");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cancelled_during_an_outage_takes_no_number_afterwards() {
    let (mut server, _proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    store.grant(request("a", 1, GrantPurpose::Issue)).await.unwrap();
    server.kill().unwrap();
    let (store, mut cancelled) = (std::sync::Arc::new(store), Vec::new());
    for _ in 0..20 {
        let node = store.clone();
        let mut call = Box::pin(async move { node.grant(request("a", 1, GrantPurpose::Issue)).await });
        // One poll puts the call into the queue.
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context)))
                .await
                .is_pending()
        );
        cancelled.push(call);
    }
    drop(cancelled);
    server.restart().unwrap();
    assert_eq!(store.grant(request("a", 1, GrantPurpose::Issue)).await.unwrap().range, range(2, 3));
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![range(1, 3)]));
}

/// Fourteen calls wait behind the first; all but the last are cancelled before it gets its locks.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_cancelled_in_the_queue_takes_no_number() {
    let (server, _proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    store.grant(request("a", 1, GrantPurpose::Issue)).await.unwrap();
    let other = connect(&server.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM bates.cursor FOR UPDATE").await.unwrap();
    let mut calls: Vec<_> =
        (0..15).map(|_| Box::pin(store.grant(request("a", 1, GrantPurpose::Issue)))).collect();
    for call in &mut calls {
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while connect(&server.url()).await.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    let (last, first) = (calls.pop().unwrap(), calls.remove(0));
    drop(calls);
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(first.await.unwrap().range, range(2, 3));
    assert_eq!(last.await.unwrap().range, range(3, 4), "the calls between them were cancelled");
}

/// A new scope is created in a second transaction, after the first is rolled back.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_is_never_answered_delays_its_scope_no_longer_than_the_timeout() {
    let (_server, proxy, store) = behind_proxy(SHORT).await;
    proxy.cut(Cut::Silence);
    let first =
        tokio::time::timeout(Duration::from_secs(20), store.grant(request("a", 1, GrantPurpose::Issue)));
    first.await.expect("an answer").ok();
    let next =
        tokio::time::timeout(Duration::from_secs(20), store.grant(request("a", 1, GrantPurpose::Issue)));
    next.await.expect("an answer").unwrap();
}

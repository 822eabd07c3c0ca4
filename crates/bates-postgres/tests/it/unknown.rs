//! Commits of unknown outcome: the connection is cut while a commit is on its way. They are looked up, and nothing of
//! them is given twice.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    GrantError, GrantPurpose, GrantRequest, PositionRange, ReleaseOutcome, ReleaseRequest, StoreError,
};
use bates_postgres::{OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::proxy::{Cut, Proxy};
use super::{connect, opened, pinned, scope_id, want};

/// A patience that tests can outlast, and that is long enough for one commit on a machine that is busy.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// A server, a proxy before it, and a store that knows only the proxy. Everything is made by another store before:
/// that takes longer than the patience of some.
pub(crate) async fn behind_proxy(patience: Duration) -> (PrivatePostgres, Proxy, PostgresStore) {
    let server = PrivatePostgres::start().unwrap();
    let maker = Settings { patience: Duration::from_mins(1), ..Settings::default() };
    pinned(&opened(&server.url(), maker, OpenMode::New).await.unwrap()).await;
    let proxy = Proxy::start(server.port()).await;
    let url = server.url().replace(&server.port().to_string(), &proxy.port.to_string());
    let settings = Settings { patience, ..Settings::default() };
    loop {
        match opened(&url, settings, OpenMode::Existing).await {
            Ok(store) => return (server, proxy, store),
            // Too slow this time.
            Err(OpenError::Database { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn lease(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_made_is_found_and_one_that_was_not_is_made_again() {
    let (server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    let mut next = 1;
    for purpose in [GrantPurpose::Hold, GrantPurpose::HandOut, GrantPurpose::Issue, GrantPurpose::Pool] {
        for cut in [Cut::After, Cut::Before] {
            for scope in ["a", "b", "a"] {
                proxy.cut(cut);
                let granted = store.grant(want(scope, 3, purpose)).await.unwrap();
                if scope == "a" {
                    assert_eq!(
                        granted.range,
                        lease(next, next + 3),
                        "{purpose:?} {cut:?}: no gap, nothing twice"
                    );
                    next += 3;
                }
            }
        }
    }
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![lease(25, 37)]));
    let client = connect(&server.url()).await;
    let burned = client.query_one("SELECT count(*) FROM bates.burned", &[]).await.unwrap();
    assert_eq!(burned.get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_goes_back_once_however_its_commit_is_cut() {
    let (_server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    for cut in [Cut::After, Cut::Before] {
        let granted = store.grant(want("a", 32, GrantPurpose::Hold)).await.unwrap();
        assert_eq!(granted.range, lease(1, 33));
        proxy.cut(cut);
        let tail = ReleaseRequest {
            scope_id: scope_id("a"),
            range: granted.range,
            version: granted.version,
            lost: vec![],
        };
        assert_eq!(store.release(tail.clone()).await, Ok(ReleaseOutcome::Returned), "{cut:?}");
        assert_eq!(store.release(tail).await, Ok(ReleaseOutcome::Gap), "{cut:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_up_in_time_is_burned_and_written_down_when_the_store_is_back() {
    let (server, proxy, store) = behind_proxy(SHORT).await;
    store.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap();
    proxy.cut_and_close(Cut::After);
    let more = GrantRequest { held_from: Some(1), ..want("a", 10, GrantPurpose::Hold) };
    let refused = store.grant(more).await.unwrap_err();
    let GrantError::Store(StoreError::Unavailable(reason)) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("not known whether it was committed"), "{reason}");
    proxy.open();
    let client = connect(&server.url()).await;
    let burned = loop {
        let rows = client.query("SELECT scope, first, last FROM bates.burned", &[]).await.unwrap();
        if let Some(row) = rows.first() {
            break (row.get::<_, String>(0), row.get::<_, i64>(1), row.get::<_, i64>(2));
        }
    };
    assert_eq!(burned, ("scope=a".to_owned(), 11, 20));
    let leases = client.query("SELECT first, last FROM bates.held_range", &[]).await.unwrap();
    let leases: Vec<(i64, i64)> = leases.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(leases, [(1, 10)], "it is in one place only: whoever dies leaves no more than it held");
    let after = store.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap();
    assert_eq!(after.range, lease(21, 31), "it is never handed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gapless_number_is_waited_for_until_its_commit_is_known() {
    let (_server, proxy, store) = behind_proxy(SHORT).await;
    let store = std::sync::Arc::new(store);
    for (cut, expected) in [(Cut::After, true), (Cut::Before, false)] {
        proxy.cut_and_close(cut);
        let asking = store.clone();
        let waiting = tokio::spawn(async move { asking.grant(want("a", 1, GrantPurpose::Issue)).await });
        proxy.has_cut().await;
        // Longer than patience: that much later it is still waited for.
        for _ in 0..3 {
            assert!(matches!(store.cursor(scope_id("a")).await, Err(StoreError::Unavailable(_))));
        }
        assert!(!waiting.is_finished(), "neither told nor burned");
        proxy.open();
        let granted = waiting.await.unwrap();
        assert_eq!(granted.is_ok(), expected, "{cut:?}: {granted:?}");
    }
    assert_eq!(store.grant(want("a", 1, GrantPurpose::Issue)).await.unwrap().range, lease(2, 3));
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![lease(1, 3)]), "no gap");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gave_up_while_the_database_was_away_takes_no_number_when_it_is_back() {
    let (mut server, _proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    store.grant(want("a", 1, GrantPurpose::Issue)).await.unwrap();
    server.kill().unwrap();
    let (store, mut gone) = (std::sync::Arc::new(store), Vec::new());
    for _ in 0..20 {
        let asking = store.clone();
        let mut asked = Box::pin(async move { asking.grant(want("a", 1, GrantPurpose::Issue)).await });
        // Polled once, so that it waits in line.
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(asked.as_mut().poll(context)))
                .await
                .is_pending()
        );
        gone.push(asked);
    }
    drop(gone);
    server.restart().unwrap();
    assert_eq!(store.grant(want("a", 1, GrantPurpose::Issue)).await.unwrap().range, lease(2, 3));
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![lease(1, 3)]));
}

/// Fifteen calls wait behind one that is served; all but the last have gone when its locks are held.
#[tokio::test(flavor = "multi_thread")]
async fn who_gave_up_behind_a_call_that_is_served_takes_no_number_with_it() {
    let (server, _proxy, store) = behind_proxy(Duration::from_mins(1)).await;
    store.grant(want("a", 1, GrantPurpose::Issue)).await.unwrap();
    let other = connect(&server.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM bates.cursor FOR UPDATE").await.unwrap();
    let mut asked: Vec<_> =
        (0..15).map(|_| Box::pin(store.grant(want("a", 1, GrantPurpose::Issue)))).collect();
    for call in &mut asked {
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while connect(&server.url()).await.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    let (last, first) = (asked.pop().unwrap(), asked.remove(0));
    drop(asked);
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(first.await.unwrap().range, lease(2, 3));
    assert_eq!(last.await.unwrap().range, lease(3, 4), "nobody between them is there any more");
}

/// A scope that is not there yet is made in a second transaction, behind the rollback of the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_is_never_answered_holds_its_scope_up_no_longer_than_patience() {
    let (_server, proxy, store) = behind_proxy(SHORT).await;
    proxy.cut(Cut::Silence);
    let asked = tokio::time::timeout(Duration::from_secs(20), store.grant(want("a", 1, GrantPurpose::Issue)));
    asked.await.expect("an answer").ok();
    let next = tokio::time::timeout(Duration::from_secs(20), store.grant(want("a", 1, GrantPurpose::Issue)));
    next.await.expect("an answer").unwrap();
}

//! Documents in a shared store: what a single store promises of them besides the suite.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    AssignError, AssignRequest, Assignment, ClaimRequest, Claimed, DocumentAction, DocumentContent,
    DocumentFilter, GapReason, GrantPurpose, Idempotency, Move, MoveMark, StoreError,
};
use bates_pattern::{Options, Pattern};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;
use tokio_postgres::Client;
use uuid::Uuid;

use super::{connect, opened, pinned, scope_id, want};

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_hours(1);

pub(crate) fn document(scope: &str) -> AssignRequest {
    let pattern = Pattern::compile("{scope}-{seq}", Options::default()).unwrap();
    AssignRequest {
        scope_id: scope_id(scope),
        start: 1,
        end: 1_000_000,
        scopes_max: 1_000,
        promise: None,
        scope: Arc::new(pattern.scope([("scope", scope)], None).unwrap()),
        document_id: Uuid::now_v7(),
        idempotency: None,
        content: DocumentContent::Document("{}".into()),
        audit_stamp: None,
    }
}

pub(crate) fn keyed(scope: &str, key: &str) -> AssignRequest {
    let idempotency = Idempotency { caller: "somebody".into(), key: key.into(), digest: [1; 32] };
    AssignRequest { idempotency: Some(idempotency), ..document(scope) }
}

pub(crate) async fn claimed(store: &PostgresStore, limit: usize, lasts: Duration) -> Vec<Claimed> {
    store
        .claim(ClaimRequest { series: "document".parse().unwrap(), limit, bytes: 1 << 30, ttl: lasts })
        .await
        .unwrap()
}

/// All documents that are there.
pub(crate) async fn numbers(store: &PostgresStore) -> Vec<Box<str>> {
    let all = store.documents(DocumentFilter::default(), None, 100_000).await.unwrap();
    let mut numbers: Vec<Box<str>> = all.into_iter().map(|document| document.number).collect();
    numbers.sort_unstable();
    numbers
}

pub(crate) async fn counted(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Keys that stand for no document.
pub(crate) const STRAYS: &str = "SELECT count(*) FROM bates.idempotency AS k
    WHERE NOT EXISTS (SELECT FROM bates.document AS d WHERE d.document_id = k.document_id)";

/// Sessions that wait for a lock.
pub(crate) const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// A server, and a store in it that has the scope a, whose first number is taken.
pub(crate) async fn started(settings: Settings) -> (PrivatePostgres, PostgresStore) {
    let server = PrivatePostgres::start().unwrap();
    let store = opened(&server.url(), settings, OpenMode::New).await.unwrap();
    pinned(&store).await;
    assert_eq!(&*store.assign(document("a")).await.unwrap().number, "a-1");
    (server, store)
}

/// A call that waits in line.
pub(crate) async fn in_line(
    store: &PostgresStore,
    call: AssignRequest,
) -> Pin<Box<impl Future<Output = Told> + use<'_>>> {
    let mut call = Box::pin(store.assign(call));
    let polled = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
    assert!(polled.await.is_pending());
    call
}

/// Somebody else has a cursor; the first call waits for it, and the others come meanwhile.
async fn behind_a_lock(
    server: &PrivatePostgres,
    store: &PostgresStore,
    calls: Vec<AssignRequest>,
) -> Vec<Told> {
    let other = connect(&server.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM bates.cursor FOR UPDATE").await.unwrap();
    let mut asked: Vec<_> = Vec::new();
    for call in calls {
        asked.push(in_line(store, call).await);
        while counted(&connect(&server.url()).await, WAITING).await == 0 {}
    }
    other.batch_execute("COMMIT").await.unwrap();
    let mut told = Vec::new();
    for call in asked {
        told.push(call.await);
    }
    told
}

pub(crate) type Told = Result<Assignment, AssignError>;

fn shown(told: &[Told]) -> Vec<String> {
    let show = |told: &Told| match told {
        Ok(assignment) => {
            format!("{} {}", assignment.number, if assignment.is_new { "new" } else { "known" })
        }
        Err(error) => error.to_string(),
    };
    told.iter().map(show).collect()
}

/// Its key could not be inserted any more: another node may have it.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_a_key_does_not_join_a_batch_whose_locks_are_held() {
    let (server, store) = started(Settings { patience: Duration::from_mins(1), ..Settings::default() }).await;
    let calls = vec![document("a"), keyed("a", "k"), document("a"), keyed("a", "k")];
    let told = behind_a_lock(&server, &store, calls).await;
    assert_eq!(shown(&told), ["a-2 new", "a-4 new", "a-3 new", "a-4 known"]);
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    assert_eq!(shown(&[other.assign(keyed("a", "k")).await]), ["a-4 known"]);
}

/// One line, so that all who come behind the first call are one batch: of a scope that is there, one that has ended,
/// one that is made in the second transaction, and one too many; and keys that several of them have.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_took_no_number_do_not_stay_behind_whatever_else_their_batch_did() {
    let settings = Settings { connections: 1, patience: Duration::from_mins(1) };
    let (server, store) = started(settings).await;
    store.assign(AssignRequest { end: 2, ..document("ended") }).await.unwrap();
    store.assign(document("later")).await.unwrap();
    let calls = vec![
        document("a"),
        keyed("a", "served"),
        AssignRequest { end: 2, ..keyed("ended", "exhausted") },
        AssignRequest { end: 2, ..keyed("ended", "moved on") },
        keyed("made", "made later"),
        AssignRequest { scopes_max: 3, ..keyed("many", "refused") },
        keyed("later", "moved on"),
        keyed("zz", "served"),
    ];
    let told = behind_a_lock(&server, &store, calls).await;
    let too_many = told[5].clone().unwrap_err();
    assert_eq!(told[2], told[3]);
    assert!(told[2].is_err() && matches!(too_many, AssignError::Grant(_)), "{told:?}");
    let served = [0, 1, 4, 6, 7].map(|at| shown(&told[at..=at]).remove(0));
    assert_eq!(served, ["a-2 new", "a-3 new", "made-1 new", "later-2 new", "a-3 known"]);
    let client = connect(&server.url()).await;
    assert_eq!(counted(&client, STRAYS).await, 0);
    assert_eq!(counted(&client, "SELECT count(*) FROM bates.idempotency").await, 3);
    assert_eq!(shown(&[store.assign(keyed("a", "moved on")).await]), ["later-2 known"]);
    assert_eq!(shown(&[store.assign(keyed("a", "exhausted")).await]), ["a-4 new"], "it is free again");
}

/// Its key is inserted when it goes; another call shares its commit.
#[tokio::test(flavor = "multi_thread")]
async fn who_gave_up_leaves_neither_a_number_nor_its_key() {
    let (server, store) = started(Settings { patience: Duration::from_mins(1), ..Settings::default() }).await;
    let client = connect(&server.url()).await;
    client.batch_execute("BEGIN; SELECT * FROM bates.cursor FOR UPDATE").await.unwrap();
    let gone = in_line(&store, keyed("a", "k")).await;
    while counted(&connect(&server.url()).await, WAITING).await == 0 {}
    let stays = in_line(&store, document("a")).await;
    drop(gone);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(shown(&[stays.await]), ["a-2 new"]);
    assert_eq!(counted(&client, "SELECT count(*) FROM bates.idempotency").await, 0);
    assert_eq!(shown(&[store.assign(keyed("a", "k")).await]), ["a-3 new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_postgres_cannot_keep_fails_for_nobody_else() {
    let (server, store) = started(Settings { patience: Duration::from_mins(1), ..Settings::default() }).await;
    let calls = vec![
        document("a"),
        AssignRequest { content: DocumentContent::Document("{\"\0\":1}".into()), ..document("a") },
        keyed("a", "good"),
    ];
    let told = behind_a_lock(&server, &store, calls).await;
    assert_eq!(shown(&told), ["a-2 new", "a-3 new", "a-4 new"]);
    let bodies: Vec<_> = claimed(&store, 10, LONG).await.into_iter().map(|claimed| claimed.body).collect();
    assert_eq!(bodies.iter().filter(|body| ***body == *"{\"\\u0000\":1}").count(), 1, "{bodies:?}");
    for key in ["a NUL \0", &"k".repeat(3_000)] {
        let refused = store.assign(keyed("a", key)).await;
        assert!(matches!(refused, Err(AssignError::BadKey(_))), "{refused:?}: it never fits");
    }
    assert!(store.assign(keyed("a", &"k".repeat(2_000))).await.unwrap().is_new);
    let filter = DocumentFilter { number: Some("a-\0".into()), ..DocumentFilter::default() };
    assert_eq!(store.documents(filter, None, 10).await, Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_for_two_documents_is_refused_and_the_store_goes_on() {
    let (_server, store) = started(Settings::default()).await;
    let ask = document("a");
    store.assign(ask.clone()).await.unwrap();
    assert!(store.assign(ask).await.is_err());
    assert_eq!(&*store.assign(document("a")).await.unwrap().number, "a-3", "no gap, and not stopped");
    assert_eq!(store.issued_ranges(scope_id("a")).await.unwrap().len(), 1);
}

/// A cursor was moved back by hand over positions that documents have.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_a_document_has_stops_the_store_rather_than_come_twice() {
    let (server, store) = started(Settings::default()).await;
    let client = connect(&server.url()).await;
    client.batch_execute("UPDATE bates.cursor SET next = 1; DELETE FROM bates.ledger").await.unwrap();
    let refused = store.assign(document("a")).await.unwrap_err().to_string();
    assert!(refused.contains("moved it back"), "{refused}");
    assert_eq!(numbers(&store).await, ["a-1".into()]);
}

fn left() -> MoveMark {
    MoveMark::Left(Move { id: Uuid::now_v7(), run: Uuid::now_v7(), other: "elsewhere".into() })
}

/// A decision that is answered and not copied would be forgotten: a reservation that was confirmed would be voided.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_claimed_or_decided_in_a_store_that_was_left() {
    let (_server, store) = started(Settings::default()).await;
    let reserved = AssignRequest { content: DocumentContent::Reservation(LONG), ..document("a") };
    let token = store.assign(reserved).await.unwrap().document_id;
    let before = store.documents(DocumentFilter::default(), None, 10).await.unwrap();
    assert_eq!(store.change_mark(None, Some(left())).await, Ok(true));
    let claim =
        ClaimRequest { series: "document".parse().unwrap(), limit: 10, bytes: 1 << 30, ttl: Duration::ZERO };
    let refused = [
        store.claim(claim).await.unwrap_err(),
        store.apply_action(token, DocumentAction::Confirm).await.unwrap_err(),
        store.apply_action_to_all(DocumentFilter::default(), DocumentAction::Abandon).await.unwrap_err(),
    ];
    for refused in refused {
        assert!(refused.to_string().contains("was left for elsewhere"), "{refused}");
    }
    assert_eq!(
        store.documents(DocumentFilter::default(), None, 10).await.unwrap(),
        before,
        "all is as it was"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_document_somebody_removed_is_told_and_not_left_behind() {
    let (server, store) = started(Settings::default()).await;
    for key in ["first", "second"] {
        store.assign(keyed("a", key)).await.unwrap();
    }
    assert_eq!(store.moved_keys(None, 10).await.unwrap().len(), 2);
    connect(&server.url())
        .await
        .batch_execute("DELETE FROM bates.document WHERE number = 'a-3'")
        .await
        .unwrap();
    let lost = store.moved_keys(None, 10).await.unwrap_err().to_string();
    assert!(lost.contains("\"second\" of series \"document\" stands for is lost"), "{lost}");
    let lost = StoreError::KeyLost { series: "document".into(), key: "second".into() };
    let refused = store.assign(keyed("a", "second")).await.unwrap_err();
    assert_eq!(refused, AssignError::from(lost), "another try would be refused as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nodes_hold_leaves_as_uncertain_and_what_was_burned_as_nobodys() {
    let (server, store) = started(Settings::default()).await;
    store.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap();
    let burned = "INSERT INTO bates.burned (series, scope, first, last, node, batch)
                  SELECT series, scope, 5, 7, node, batch FROM bates.held_range";
    connect(&server.url()).await.batch_execute(burned).await.unwrap();
    let leaving = store.moved_scopes("document".parse().unwrap(), None, 10).await.unwrap();
    let lost: Vec<(u64, u64, GapReason)> =
        leaving[0].lost.iter().map(|lost| (lost.range.from(), lost.range.to(), lost.reason)).collect();
    assert_eq!(
        lost,
        [(2, 5, GapReason::CrashSkip), (5, 8, GapReason::Burned), (8, 12, GapReason::CrashSkip)]
    );
    assert_eq!(leaving[0].ledger, store.issued_ranges(scope_id("a")).await.unwrap());
}

/// Somebody is about to confirm a reservation: what is copied behind the mark must know of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_waits_for_whoever_is_deciding() {
    let (server, store) = started(Settings { patience: Duration::from_mins(1), ..Settings::default() }).await;
    let (store, client) = (Arc::new(store), connect(&server.url()).await);
    client.batch_execute("BEGIN; UPDATE bates.document SET state = 'abandoned'").await.unwrap();
    let marking = store.clone();
    let marking = tokio::spawn(async move { marking.change_mark(None, Some(left())).await });
    let other = connect(&server.url()).await;
    while counted(&other, WAITING).await == 0 {
        assert!(!marking.is_finished(), "it did not wait");
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(marking.await.unwrap(), Ok(true));
}

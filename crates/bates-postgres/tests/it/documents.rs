//! Documents in a shared store: claims that the conformance suite does not cover.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    AssignError, AssignRequest, Assignment, ClaimRequest, Delivery, DocumentAction, DocumentContent,
    DocumentFilter, GapReason, GrantPurpose, Idempotency, Move, MoveMark, StoreError,
};
use bates_pattern::{Options, Pattern};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;
use tokio_postgres::Client;
use uuid::Uuid;

use super::{connect, open_store, pin_series, request, scope_id};

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
        only_repeats: false,
        content: DocumentContent::Document("{}".into()),
        caller: "test".into(),
        audit_stamp: None,
    }
}

pub(crate) fn keyed(scope: &str, key: &str) -> AssignRequest {
    let idempotency = Idempotency { caller: "test".into(), key: key.into(), digest: [1; 32] };
    AssignRequest { idempotency: Some(idempotency), ..document(scope) }
}

pub(crate) async fn claim(store: &PostgresStore, limit: usize, ttl: Duration) -> Vec<Delivery> {
    store
        .claim(ClaimRequest { series: "document".parse().unwrap(), limit, stop_at_bytes: 1 << 30, ttl })
        .await
        .unwrap()
}

/// The numbers of all documents, sorted.
pub(crate) async fn numbers(store: &PostgresStore) -> Vec<Box<str>> {
    let all = store.documents(DocumentFilter::default(), None, 100_000).await.unwrap();
    let mut numbers: Vec<Box<str>> = all.into_iter().map(|document| document.number).collect();
    numbers.sort_unstable();
    numbers
}

pub(crate) async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Counts idempotency keys without a document.
pub(crate) const STRAYS: &str = "SELECT count(*) FROM bates.idempotency AS k
    WHERE NOT EXISTS (SELECT FROM bates.document AS d WHERE d.document_id = k.document_id)";

/// Counts sessions that wait for a lock.
pub(crate) const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// A server, and a store in it in which the number `a-1` is assigned.
pub(crate) async fn start_store(settings: Settings) -> (PrivatePostgres, PostgresStore) {
    let server = PrivatePostgres::start().unwrap();
    let store = open_store(&server.url(), settings, OpenMode::New).await.unwrap();
    pin_series(&store).await;
    assert_eq!(&*store.assign(document("a")).await.unwrap().number, "a-1");
    (server, store)
}

/// Puts a call into the queue of the store, and returns its future.
pub(crate) async fn enqueue(
    store: &PostgresStore,
    call: AssignRequest,
) -> Pin<Box<impl Future<Output = Outcome> + use<'_>>> {
    let mut call = Box::pin(store.assign(call));
    let polled = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
    assert!(polled.await.is_pending());
    call
}

/// Holds the lock of all cursors while the calls arrive one after the other, and returns their outcomes.
async fn assign_behind_lock(
    server: &PrivatePostgres,
    store: &PostgresStore,
    calls: Vec<AssignRequest>,
) -> Vec<Outcome> {
    let other = connect(&server.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM bates.cursor FOR UPDATE").await.unwrap();
    let mut waiting = Vec::new();
    for call in calls {
        waiting.push(enqueue(store, call).await);
        while count(&connect(&server.url()).await, WAITING).await == 0 {}
    }
    other.batch_execute("COMMIT").await.unwrap();
    let mut outcomes = Vec::new();
    for call in waiting {
        outcomes.push(call.await);
    }
    outcomes
}

pub(crate) type Outcome = Result<Assignment, AssignError>;

fn shown(outcomes: &[Outcome]) -> Vec<String> {
    let show = |outcome: &Outcome| match outcome {
        Ok(assignment) => {
            format!("{} {}", assignment.number, if assignment.is_new { "new" } else { "known" })
        }
        Err(error) => error.to_string(),
    };
    outcomes.iter().map(show).collect()
}

/// Keys are inserted before the locks are taken; a later one could belong to another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_key_does_not_join_a_batch_that_holds_its_locks() {
    let (server, store) =
        start_store(Settings { timeout: Duration::from_mins(1), ..Settings::default() }).await;
    let calls = vec![document("a"), keyed("a", "k"), document("a"), keyed("a", "k")];
    let outcomes = assign_behind_lock(&server, &store, calls).await;
    assert_eq!(shown(&outcomes), ["a-2 new", "a-4 new", "a-3 new", "a-4 known"]);
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    assert_eq!(shown(&[other.assign(keyed("a", "k")).await]), ["a-4 known"]);
}

/// With one connection, all calls after the first form one batch: for an existing scope, an exhausted one, a
/// new one and one above the limit, some of them with the same key.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_refused_call_is_not_stored_whatever_its_batch_did() {
    let settings = Settings { connections: 1, timeout: Duration::from_mins(1) };
    let (server, store) = start_store(settings).await;
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
    let outcomes = assign_behind_lock(&server, &store, calls).await;
    let too_many = outcomes[5].clone().unwrap_err();
    assert_eq!(outcomes[2], outcomes[3]);
    assert!(outcomes[2].is_err() && matches!(too_many, AssignError::Grant(_)), "{outcomes:?}");
    let served = [0, 1, 4, 6, 7].map(|at| shown(&outcomes[at..=at]).remove(0));
    assert_eq!(served, ["a-2 new", "a-3 new", "made-1 new", "later-2 new", "a-3 known"]);
    let client = connect(&server.url()).await;
    assert_eq!(count(&client, STRAYS).await, 0);
    assert_eq!(count(&client, "SELECT count(*) FROM bates.idempotency").await, 3);
    assert_eq!(shown(&[store.assign(keyed("a", "moved on")).await]), ["later-2 known"]);
    assert_eq!(shown(&[store.assign(keyed("a", "exhausted")).await]), ["a-4 new"], "the key is free");
}

/// The call is cancelled after its key was inserted; another call shares its commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_takes_neither_a_number_nor_its_key() {
    let (server, store) =
        start_store(Settings { timeout: Duration::from_mins(1), ..Settings::default() }).await;
    let client = connect(&server.url()).await;
    client.batch_execute("BEGIN; SELECT * FROM bates.cursor FOR UPDATE").await.unwrap();
    let cancelled = enqueue(&store, keyed("a", "k")).await;
    while count(&connect(&server.url()).await, WAITING).await == 0 {}
    let waiting = enqueue(&store, document("a")).await;
    drop(cancelled);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(shown(&[waiting.await]), ["a-2 new"]);
    assert_eq!(count(&client, "SELECT count(*) FROM bates.idempotency").await, 0);
    assert_eq!(shown(&[store.assign(keyed("a", "k")).await]), ["a-3 new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_postgres_cannot_store_does_not_fail_other_calls() {
    let (server, store) =
        start_store(Settings { timeout: Duration::from_mins(1), ..Settings::default() }).await;
    let calls = vec![
        document("a"),
        AssignRequest { content: DocumentContent::Document("{\"\0\":1}".into()), ..document("a") },
        keyed("a", "good"),
    ];
    let outcomes = assign_behind_lock(&server, &store, calls).await;
    assert_eq!(shown(&outcomes), ["a-2 new", "a-3 new", "a-4 new"]);
    let bodies: Vec<_> = claim(&store, 10, LONG).await.into_iter().map(|claimed| claimed.body).collect();
    assert_eq!(bodies.iter().filter(|body| ***body == *"{\"\\u0000\":1}").count(), 1, "{bodies:?}");
    for key in ["a NUL \0", &"k".repeat(3_000)] {
        let refused = store.assign(keyed("a", key)).await;
        assert!(matches!(refused, Err(AssignError::BadKey(_))), "{refused:?}: no retry would help");
    }
    assert!(store.assign(keyed("a", &"k".repeat(2_000))).await.unwrap().is_new);
    let filter = DocumentFilter { number: Some("a-\0".into()), ..DocumentFilter::default() };
    assert_eq!(store.documents(filter, None, 10).await, Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_document_with_the_same_id_is_refused_and_the_store_continues() {
    let (_server, store) = start_store(Settings::default()).await;
    let request = document("a");
    store.assign(request.clone()).await.unwrap();
    assert!(store.assign(request).await.is_err());
    assert_eq!(
        &*store.assign(document("a")).await.unwrap().number,
        "a-3",
        "no gap, and the store is not stopped"
    );
    assert_eq!(store.issued_ranges(scope_id("a")).await.unwrap().len(), 1);
}

/// The cursor was moved back by hand to a position that has a document.
#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_already_has_a_document_stops_the_store() {
    let (server, store) = start_store(Settings::default()).await;
    let client = connect(&server.url()).await;
    client.batch_execute("UPDATE bates.cursor SET next = 1; DELETE FROM bates.ledger").await.unwrap();
    let refused = store.assign(document("a")).await.unwrap_err().to_string();
    assert!(refused.contains("moved it back"), "{refused}");
    assert_eq!(numbers(&store).await, ["a-1".into()]);
}

fn left() -> MoveMark {
    MoveMark::Left(Move { id: Uuid::now_v7(), run: Uuid::now_v7(), other: "elsewhere".into() })
}

/// An action that is answered but not copied would be lost: a confirmed reservation would be voided.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_left_refuses_claims_and_actions() {
    let (_server, store) = start_store(Settings::default()).await;
    let reserved = AssignRequest { content: DocumentContent::Reservation(LONG), ..document("a") };
    let token = store.assign(reserved).await.unwrap().document_id;
    let before = store.documents(DocumentFilter::default(), None, 10).await.unwrap();
    assert_eq!(store.change_mark(None, Some(left())).await, Ok(true));
    let series = "document".parse().unwrap();
    let claim = ClaimRequest { series, limit: 10, stop_at_bytes: 1 << 30, ttl: Duration::ZERO };
    let refused = [
        store.claim(claim).await.unwrap_err(),
        store.apply_action(token, DocumentAction::Confirm, None).await.unwrap_err(),
        store
            .apply_action_to_all(DocumentFilter::default(), DocumentAction::Abandon, None)
            .await
            .unwrap_err(),
    ];
    for refused in refused {
        assert!(refused.to_string().contains("was left for elsewhere"), "{refused}");
    }
    assert_eq!(
        store.documents(DocumentFilter::default(), None, 10).await.unwrap(),
        before,
        "the refused calls changed nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_document_was_removed_by_hand_is_reported_and_not_skipped() {
    let (server, store) = start_store(Settings::default()).await;
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
    assert_eq!(refused, AssignError::from(lost), "the error is not one to retry");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_exports_held_ranges_as_uncertain_and_burned_ranges_as_burned() {
    let (server, store) = start_store(Settings::default()).await;
    store.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap();
    let burned = "INSERT INTO bates.burned (series, scope, first, last, node, batch)
                  SELECT series, scope, 5, 7, node, batch FROM bates.held_range";
    connect(&server.url()).await.batch_execute(burned).await.unwrap();
    let moved = store.moved_scopes("document".parse().unwrap(), None, 10).await.unwrap();
    let lost: Vec<(u64, u64, GapReason)> =
        moved[0].lost.iter().map(|lost| (lost.range.from(), lost.range.to(), lost.reason)).collect();
    assert_eq!(
        lost,
        [(2, 5, GapReason::CrashSkip), (5, 8, GapReason::Burned), (8, 12, GapReason::CrashSkip)]
    );
    assert_eq!(moved[0].ledger, store.issued_ranges(scope_id("a")).await.unwrap());
}

/// A transaction is about to change a document; the copy that begins with the mark must contain the change.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_waits_for_open_changes_of_documents() {
    let (server, store) =
        start_store(Settings { timeout: Duration::from_mins(1), ..Settings::default() }).await;
    let (store, client) = (Arc::new(store), connect(&server.url()).await);
    client.batch_execute("BEGIN; UPDATE bates.document SET state = 'abandoned'").await.unwrap();
    let marking = store.clone();
    let marking = tokio::spawn(async move { marking.change_mark(None, Some(left())).await });
    let other = connect(&server.url()).await;
    while count(&other, WAITING).await == 0 {
        assert!(!marking.is_finished(), "it did not wait");
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(marking.await.unwrap(), Ok(true));
}

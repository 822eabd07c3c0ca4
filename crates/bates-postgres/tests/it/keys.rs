//! Idempotency keys in a shared store: requests with the same key get the same number, on any node, with any
//! failure, and at any concurrency.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{AssignError, Assignment, PositionRange, Store};
use bates_postgres::{OpenMode, Settings};
use bates_testkit::PrivatePostgres;
use tokio_postgres::Client;

use super::documents::{STRAYS, WAITING, count, enqueue, keyed, numbers, start_store};
use super::proxy::Cut;
use super::unknown_commits::{SHORT, behind_proxy};
use super::{connect, open_store, scope_id};

/// Waits until all other sessions have ended and reported their statistics, and checks that none had a
/// deadlock.
pub(crate) async fn assert_no_deadlock(server: &PrivatePostgres) {
    let client = connect(&server.url()).await;
    let others = "SELECT count(*) FROM pg_stat_activity
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while count(&client, others).await > 0 {}
    let deadlocks = "SELECT sum(deadlocks)::bigint FROM pg_stat_database";
    assert_eq!(count(&client, deadlocks).await, 0);
}

/// Fault 9: the outcome of the commit is unknown until it is looked up.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_commit_numbers_its_document_once_and_its_key_returns_that_number() {
    let (server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    let mut expected = Vec::new();
    for (at, cut) in [Cut::After, Cut::Before, Cut::After, Cut::Before].into_iter().enumerate() {
        for scope in ["a", "b"] {
            let (key, number) = (format!("{scope} {at}"), format!("{scope}-{}", at + 1));
            proxy.cut(cut);
            let first = store.assign(keyed(scope, &key)).await.unwrap();
            assert_eq!((&*first.number, first.is_new), (&*number, true), "{cut:?}: no gap");
            let again = store.assign(keyed(scope, &key)).await.unwrap();
            assert_eq!(again, Assignment { is_new: false, ..first }, "{cut:?}");
            expected.push(number.into_boxed_str());
        }
    }
    expected.sort_unstable();
    assert_eq!(numbers(&store).await, expected, "one document each");
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![PositionRange::new(1, 5).unwrap()]));
    assert_eq!(count(&connect(&server.url()).await, "SELECT count(*) FROM bates.burned").await, 0);
}

/// Fault 9: the node cannot look its commit up, and a client sends the same key to another node.
#[tokio::test(flavor = "multi_thread")]
async fn another_node_answers_a_key_whose_commit_the_first_cannot_look_up() {
    let (server, proxy, cut_off) = behind_proxy(SHORT).await;
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let cut_off = Arc::new(cut_off);
    cut_off.assign(keyed("a", "before")).await.unwrap();
    for (cut, key, number) in [(Cut::After, "made", "a-2"), (Cut::Before, "not made", "a-3")] {
        proxy.cut_and_close(cut);
        let node = cut_off.clone();
        let waiting = tokio::spawn(async move { node.assign(keyed("a", key)).await });
        proxy.has_cut().await;
        // Each failure takes as long as the timeout; the document is neither burned nor given up.
        for _ in 0..3 {
            assert!(cut_off.cursor(scope_id("a")).await.is_err());
        }
        assert!(!waiting.is_finished(), "{cut:?}");
        let answered = other.assign(keyed("a", key)).await.unwrap();
        assert_eq!((&*answered.number, answered.is_new), (number, cut == Cut::Before));
        proxy.open();
        let late = waiting.await.unwrap();
        assert_eq!(late.is_ok(), cut == Cut::After, "{late:?}");
        let again = cut_off.assign(keyed("a", key)).await.unwrap();
        assert_eq!((again.document_id, &*again.number, again.is_new), (answered.document_id, number, false));
    }
    assert_eq!(numbers(&other).await, ["a-1", "a-2", "a-3"].map(Into::into));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_get_the_same_key_at_once_assign_one_number() {
    let (server, one) = start_store(Settings::default()).await;
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let mut expected: BTreeSet<Box<str>> = numbers(&one).await.into_iter().collect();
    for at in 0..100 {
        let key = format!("key {at}");
        // Every fourth pair reuses the key for another request, and every third begins a scope.
        let scope = if at % 3 == 0 { format!("s{at}") } else { "a".to_owned() };
        let mut theirs = keyed(&scope, &key);
        if at % 4 == 0 {
            theirs.idempotency.as_mut().unwrap().digest = [2; 32];
        }
        let (one, other) = tokio::join!(one.assign(keyed(&scope, &key)), other.assign(theirs));
        let assigned: Vec<Assignment> = [&one, &other].into_iter().flatten().cloned().collect();
        assert_eq!(assigned.iter().filter(|assigned| assigned.is_new).count(), 1, "{one:?} {other:?}");
        if at % 4 == 0 {
            assert!([one, other].contains(&Err(AssignError::KeyReused)));
        } else {
            assert_eq!((assigned.len(), &assigned[0].number), (2, &assigned[1].number));
        }
        assert!(expected.insert(assigned[0].number.clone()), "no other key has this number");
    }
    assert_eq!(numbers(&one).await, expected.into_iter().collect::<Vec<_>>());
}

/// A session that has inserted a key and not committed yet.
async fn insert_key(server: &PrivatePostgres, key: &str) -> Client {
    let client = connect(&server.url()).await;
    let insert = format!(
        "BEGIN; INSERT INTO bates.idempotency (caller, series, key, digest, document_id, batch)
         VALUES ('test', 'document', '{key}', '', gen_random_uuid(), gen_random_uuid())"
    );
    client.batch_execute(&insert).await.unwrap();
    client
}

/// Keys are inserted before cursors are locked, so a call that holds a key never waits for a call that waits
/// for the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_a_key_locks_no_cursor() {
    let settings = Settings { timeout: Duration::from_mins(1), ..Settings::default() };
    let (server, one) = start_store(settings).await;
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let (user, client) = (insert_key(&server, "k").await, connect(&server.url()).await);
    let waiting = enqueue(&one, keyed("a", "k")).await;
    while count(&client, WAITING).await == 0 {}
    assert_eq!(&*other.assign(keyed("a", "another")).await.unwrap().number, "a-2");
    user.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(&*waiting.await.unwrap().number, "a-3");
}

/// Two nodes with one connection each wait for the key `gate`. Then each has a batch of the same keys, in
/// opposite orders and for different scopes. The test holds the key `m` until both batches have begun.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_lock_keys_in_one_order_whatever_the_order_of_requests() {
    let settings = Settings { connections: 1, timeout: Duration::from_mins(1) };
    let (server, one) = start_store(settings).await;
    let other = open_store(&server.url(), settings, OpenMode::Existing).await.unwrap();
    let (gate, middle) = (insert_key(&server, "gate").await, insert_key(&server, "m").await);
    let client = connect(&server.url()).await;
    let mut calls = vec![enqueue(&one, keyed("b", "gate")).await, enqueue(&other, keyed("c", "gate")).await];
    while count(&client, WAITING).await < 2 {}
    for (first, second) in [("a", "z"), ("m", "m"), ("z", "a")] {
        calls.push(enqueue(&one, keyed("b", first)).await);
        calls.push(enqueue(&other, keyed("c", second)).await);
    }
    gate.batch_execute("ROLLBACK").await.unwrap();
    // One node uses the gate; the other sees that after the commit. Then both wait again.
    while count(&client, WAITING_AFTER_GATE).await < 2 {}
    middle.batch_execute("ROLLBACK").await.unwrap();
    let mut numbers = Vec::new();
    for call in calls {
        numbers.push(call.await.unwrap().number);
    }
    assert_eq!((&numbers[2], &numbers[4], &numbers[6]), (&numbers[7], &numbers[5], &numbers[3]));
    drop((one, other, gate, middle, client));
    assert_no_deadlock(&server).await;
}

/// Sessions that wait for a lock after the gate was used.
const WAITING_AFTER_GATE: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND EXISTS (SELECT FROM bates.idempotency WHERE key = 'gate')";

/// Keys per round. Must be prime, so that [`write`] reaches all of them.
const KEYS: usize = 29;
const ROUNDS: usize = 5;

/// The answers to one writer, by key. All writers use the same keys at about the same time. Each pair of
/// writers, one on each node, uses them in the same order, but for different scopes: so only the key itself
/// prevents a second number.
async fn write(store: Arc<impl Store>, writer: usize) -> Vec<((usize, usize), Assignment)> {
    let mut answers = Vec::new();
    for round in 0..ROUNDS {
        for step in 0..KEYS {
            let at = (writer / 2 * 7 + step * (writer / 2 + 1)) % KEYS;
            let request = keyed(&format!("s{}", (at + writer) % 7), &format!("{round} {at}"));
            answers.push(((round, at), store.assign(request).await.unwrap()));
        }
    }
    answers
}

/// Fault 19.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_writers_on_two_nodes_get_one_number_per_key_without_gap_or_deadlock() {
    let server = fifty_writers(false).await;
    assert_no_deadlock(&server).await;
}

/// Fault 19: sessions are terminated meanwhile, some during their commit. That would also break deadlocks, so
/// this test does not look for them.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_writers_whose_sessions_are_terminated_get_one_number_per_key_without_gap() {
    fifty_writers(true).await;
}

async fn fifty_writers(are_ended: bool) -> PrivatePostgres {
    let settings = Settings { timeout: Duration::from_mins(1), ..Settings::default() };
    let (server, first) = start_store(settings).await;
    let second = open_store(&server.url(), settings, OpenMode::Existing).await.unwrap();
    let stores = [Arc::new(first), Arc::new(second)];
    let is_over = Arc::new(AtomicBool::new(!are_ended));
    let ending = tokio::spawn(end_sessions(server.url(), is_over.clone()));
    let writers: Vec<_> =
        (0..50).map(|writer| tokio::spawn(write(stores[writer % 2].clone(), writer))).collect();
    let mut by_key: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut firsts = 0;
    for writer in writers {
        for (key, answer) in writer.await.unwrap() {
            firsts += usize::from(answer.is_new);
            by_key.entry(key).or_default().insert((answer.number, answer.document_id));
        }
    }
    is_over.store(true, Ordering::SeqCst);
    assert_eq!(ending.await.unwrap() > 0, are_ended);
    assert!(by_key.values().all(|answers| answers.len() == 1), "{by_key:?}");
    assert_eq!(
        (by_key.len(), firsts),
        (KEYS * ROUNDS, KEYS * ROUNDS),
        "each key is new to exactly one writer"
    );
    let mut all: Vec<Box<str>> = by_key.into_values().flatten().map(|(number, _)| number).collect();
    all.push("a-1".into());
    all.sort_unstable();
    assert_eq!(numbers(&stores[0]).await, all, "one document per key, and the first one");
    let mut issued = 0;
    for scope in 0..7 {
        let ledger = stores[0].issued_ranges(scope_id(&format!("s{scope}"))).await.unwrap();
        assert_eq!((ledger.len(), ledger[0].from()), (1, 1), "no gap");
        issued += ledger[0].to() - 1;
    }
    assert_eq!(issued, (KEYS * ROUNDS) as u64);
    assert_eq!(count(&connect(&server.url()).await, STRAYS).await, 0);
    server
}

/// Keeps terminating sessions that are in a transaction; returns how many.
async fn end_sessions(url: String, is_over: Arc<AtomicBool>) -> i64 {
    let client = connect(&url).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
               WHERE backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
               ORDER BY random() LIMIT 1) AS chosen";
    let mut ended = 0;
    while !is_over.load(Ordering::SeqCst) {
        ended += count(&client, end).await;
        // Lets some commits succeed before the next session is terminated.
        for _ in 0..20 {
            count(&client, "SELECT count(*) FROM bates.document").await;
        }
    }
    ended
}

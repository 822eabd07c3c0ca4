//! Idempotency keys in a shared store: the same request gets the same number, whichever node it asks, whatever breaks
//! on the way, and however many ask at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{AssignError, Assignment, PositionRange, Store};
use bates_postgres::{OpenMode, Settings};
use bates_testkit::PrivatePostgres;
use tokio_postgres::Client;

use super::documents::{STRAYS, WAITING, counted, in_line, keyed, numbers, started};
use super::proxy::Cut;
use super::unknown::{SHORT, behind_proxy};
use super::{connect, opened, scope_id};

/// Reads how often PostgreSQL broke a deadlock, once all sessions have told.
pub(crate) async fn no_deadlock(server: &PrivatePostgres) {
    let client = connect(&server.url()).await;
    let others = "SELECT count(*) FROM pg_stat_activity
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while counted(&client, others).await > 0 {}
    let deadlocks = "SELECT sum(deadlocks)::bigint FROM pg_stat_database";
    assert_eq!(counted(&client, deadlocks).await, 0);
}

/// Fault 9: nothing is known of the commit until it is looked up.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_cut_numbers_its_document_once_and_its_key_tells_which() {
    let (server, proxy, store) = behind_proxy(Duration::from_secs(30)).await;
    let mut expected = Vec::new();
    for (at, cut) in [Cut::After, Cut::Before, Cut::After, Cut::Before].into_iter().enumerate() {
        for scope in ["a", "b"] {
            let (key, number) = (format!("{scope} {at}"), format!("{scope}-{}", at + 1));
            proxy.cut(cut);
            let given = store.assign(keyed(scope, &key)).await.unwrap();
            assert_eq!((&*given.number, given.is_new), (&*number, true), "{cut:?}: no gap");
            let again = store.assign(keyed(scope, &key)).await.unwrap();
            assert_eq!(again, Assignment { is_new: false, ..given }, "{cut:?}");
            expected.push(number.into_boxed_str());
        }
    }
    expected.sort_unstable();
    assert_eq!(numbers(&store).await, expected, "one document each");
    assert_eq!(store.issued_ranges(scope_id("a")).await, Ok(vec![PositionRange::new(1, 5).unwrap()]));
    assert_eq!(counted(&connect(&server.url()).await, "SELECT count(*) FROM bates.burned").await, 0);
}

/// Fault 9, and the node cannot look it up: another one is asked with the same key.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_cannot_look_up_another_tells_by_its_key() {
    let (server, proxy, cut_off) = behind_proxy(SHORT).await;
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let cut_off = Arc::new(cut_off);
    cut_off.assign(keyed("a", "before")).await.unwrap();
    for (cut, key, number) in [(Cut::After, "made", "a-2"), (Cut::Before, "not made", "a-3")] {
        proxy.cut_and_close(cut);
        let asking = cut_off.clone();
        let waiting = tokio::spawn(async move { asking.assign(keyed("a", key)).await });
        proxy.has_cut().await;
        // Longer than patience: a document is neither burned nor given up.
        for _ in 0..3 {
            assert!(cut_off.cursor(scope_id("a")).await.is_err());
        }
        assert!(!waiting.is_finished(), "{cut:?}");
        let told = other.assign(keyed("a", key)).await.unwrap();
        assert_eq!((&*told.number, told.is_new), (number, cut == Cut::Before));
        proxy.open();
        let late = waiting.await.unwrap();
        assert_eq!(late.is_ok(), cut == Cut::After, "{late:?}");
        let again = cut_off.assign(keyed("a", key)).await.unwrap();
        assert_eq!((again.document_id, &*again.number, again.is_new), (told.document_id, number, false));
    }
    assert_eq!(numbers(&other).await, ["a-1", "a-2", "a-3"].map(Into::into));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_are_asked_the_same_at_once_give_one_number() {
    let (server, one) = started(Settings::default()).await;
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let mut expected: BTreeSet<Box<str>> = numbers(&one).await.into_iter().collect();
    for at in 0..100 {
        let key = format!("key {at}");
        // Every fourth is another request under the same key, and every third begins a scope.
        let scope = if at % 3 == 0 { format!("s{at}") } else { "a".to_owned() };
        let mut theirs = keyed(&scope, &key);
        if at % 4 == 0 {
            theirs.idempotency.as_mut().unwrap().digest = [2; 32];
        }
        let (one, other) = tokio::join!(one.assign(keyed(&scope, &key)), other.assign(theirs));
        let told: Vec<Assignment> = [&one, &other].into_iter().flatten().cloned().collect();
        assert_eq!(told.iter().filter(|told| told.is_new).count(), 1, "{one:?} {other:?}");
        if at % 4 == 0 {
            assert!([one, other].contains(&Err(AssignError::KeyReused)));
        } else {
            assert_eq!((told.len(), &told[0].number), (2, &told[1].number));
        }
        assert!(expected.insert(told[0].number.clone()), "it is nobody else's");
    }
    assert_eq!(numbers(&one).await, expected.into_iter().collect::<Vec<_>>());
}

/// Somebody else is about to use a key.
async fn about_to_use(server: &PrivatePostgres, key: &str) -> Client {
    let client = connect(&server.url()).await;
    let insert = format!(
        "BEGIN; INSERT INTO bates.idempotency (caller, series, key, digest, document_id, batch)
         VALUES ('somebody', 'document', '{key}', '', gen_random_uuid(), gen_random_uuid())"
    );
    client.batch_execute(&insert).await.unwrap();
    client
}

/// Keys are inserted before cursors are locked: so whoever holds a key never waits behind one who waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_key_has_no_cursor_meanwhile() {
    let settings = Settings { patience: Duration::from_mins(1), ..Settings::default() };
    let (server, one) = started(settings).await;
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    let (user, client) = (about_to_use(&server, "k").await, connect(&server.url()).await);
    let waits = in_line(&one, keyed("a", "k")).await;
    while counted(&client, WAITING).await == 0 {}
    assert_eq!(&*other.assign(keyed("a", "another")).await.unwrap().number, "a-2");
    user.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(&*waits.await.unwrap().number, "a-3");
}

/// Two nodes, one line each, wait for the gate; then each has a batch of the same keys, asked for in opposite orders
/// and for different scopes, of which somebody holds the one in the middle until both have begun.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_take_keys_in_one_order_however_they_are_asked() {
    let settings = Settings { connections: 1, patience: Duration::from_mins(1) };
    let (server, one) = started(settings).await;
    let other = opened(&server.url(), settings, OpenMode::Existing).await.unwrap();
    let (gate, middle) = (about_to_use(&server, "gate").await, about_to_use(&server, "m").await);
    let waiting = connect(&server.url()).await;
    let mut asked = vec![in_line(&one, keyed("b", "gate")).await, in_line(&other, keyed("c", "gate")).await];
    while counted(&waiting, WAITING).await < 2 {}
    for (first, second) in [("a", "z"), ("m", "m"), ("z", "a")] {
        asked.push(in_line(&one, keyed("b", first)).await);
        asked.push(in_line(&other, keyed("c", second)).await);
    }
    gate.batch_execute("ROLLBACK").await.unwrap();
    // One has the gate, and the other learns of it when that is committed: then both wait again.
    while counted(&waiting, HELD_UP).await < 2 {}
    middle.batch_execute("ROLLBACK").await.unwrap();
    let mut numbers = Vec::new();
    for asked in asked {
        numbers.push(asked.await.unwrap().number);
    }
    assert_eq!((&numbers[2], &numbers[4], &numbers[6]), (&numbers[7], &numbers[5], &numbers[3]));
    drop((one, other, gate, middle, waiting));
    no_deadlock(&server).await;
}

/// Sessions that wait for a lock behind the gate, which is used by now.
const HELD_UP: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND EXISTS (SELECT FROM bates.idempotency WHERE key = 'gate')";

/// Keys of a round, a prime number; and rounds.
const KEYS: usize = 29;
const ROUNDS: usize = 5;

/// What a writer is told, by key. All ask for the same keys at about the same time, pairs of them on two nodes in the
/// same order, and each for another scope: so nothing but the key itself keeps them apart.
async fn write(store: Arc<impl Store>, writer: usize) -> Vec<((usize, usize), Assignment)> {
    let mut told = Vec::new();
    for round in 0..ROUNDS {
        for step in 0..KEYS {
            // A walk over all keys of the round, because their number is prime.
            let at = (writer / 2 * 7 + step * (writer / 2 + 1)) % KEYS;
            let ask = keyed(&format!("s{}", (at + writer) % 7), &format!("{round} {at}"));
            told.push(((round, at), store.assign(ask).await.unwrap()));
        }
    }
    told
}

/// Fault 19.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_writers_on_two_nodes_get_one_number_a_key_without_gap_or_deadlock() {
    let server = fifty_writers(false).await;
    no_deadlock(&server).await;
}

/// Fault 19: sessions are ended in the midst of it, some of them while they commit. That would break deadlocks, too.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_writers_whose_sessions_are_ended_get_one_number_a_key_without_gap() {
    fifty_writers(true).await;
}

async fn fifty_writers(are_ended: bool) -> PrivatePostgres {
    let settings = Settings { patience: Duration::from_mins(1), ..Settings::default() };
    let (server, first) = started(settings).await;
    let second = opened(&server.url(), settings, OpenMode::Existing).await.unwrap();
    let stores = [Arc::new(first), Arc::new(second)];
    let is_over = Arc::new(AtomicBool::new(!are_ended));
    let ending = tokio::spawn(end_sessions(server.url(), is_over.clone()));
    let writers: Vec<_> =
        (0..50).map(|writer| tokio::spawn(write(stores[writer % 2].clone(), writer))).collect();
    let mut by_key: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut firsts = 0;
    for writer in writers {
        for (key, told) in writer.await.unwrap() {
            firsts += usize::from(told.is_new);
            by_key.entry(key).or_default().insert((told.number, told.document_id));
        }
    }
    is_over.store(true, Ordering::SeqCst);
    assert_eq!(ending.await.unwrap() > 0, are_ended);
    assert!(by_key.values().all(|told| told.len() == 1), "{by_key:?}");
    assert_eq!((by_key.len(), firsts), (KEYS * ROUNDS, KEYS * ROUNDS), "each is new to one of all who asked");
    let mut all: Vec<Box<str>> = by_key.into_values().flatten().map(|(number, _)| number).collect();
    all.push("a-1".into());
    all.sort_unstable();
    assert_eq!(numbers(&stores[0]).await, all, "a document each, besides the one that began");
    let mut issued = 0;
    for scope in 0..7 {
        let ledger = stores[0].issued_ranges(scope_id(&format!("s{scope}"))).await.unwrap();
        assert_eq!((ledger.len(), ledger[0].from()), (1, 1), "no gap");
        issued += ledger[0].to() - 1;
    }
    assert_eq!(issued, (KEYS * ROUNDS) as u64);
    assert_eq!(counted(&connect(&server.url()).await, STRAYS).await, 0);
    server
}

/// Ends a session that is in a transaction, again and again; answers how many.
async fn end_sessions(url: String, is_over: Arc<AtomicBool>) -> i64 {
    let client = connect(&url).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
               WHERE backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
               ORDER BY random() LIMIT 1) AS chosen";
    let mut ended = 0;
    while !is_over.load(Ordering::SeqCst) {
        ended += counted(&client, end).await;
        // Some commits get through between two that are ended.
        for _ in 0..20 {
            counted(&client, "SELECT count(*) FROM bates.document").await;
        }
    }
    ended
}

//! An installation with documents and keys that moves from a folder to PostgreSQL and back: what it said before, it
//! says there. Also when the move is killed in the middle.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use bates_postgres::{Address, OpenMode, PostgresStore, Settings};
use bates_sqlite::SqliteStore;
use bates_testkit::{PrivatePostgres, exercise_move, programs};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::http::ask;
use super::super::running::Server;
use super::receiver::{Behaviour, Receiver};
use super::{Home, post, send};

/// Each store is exercised with its like where it is; here one with the other.
#[tokio::test(flavor = "multi_thread")]
async fn stores_of_one_kind_are_moved_to_the_other() {
    let (folder, server) = (tempfile::tempdir().unwrap(), PrivatePostgres::start().unwrap());
    let embedded =
        |name: &str| SqliteStore::open(&folder.path().join(name), bates_sqlite::OpenMode::First).unwrap();
    let shared = async |url: &str| {
        let address = Address::parse(url).unwrap();
        PostgresStore::open(&address, Settings::default(), OpenMode::New).await.unwrap()
    };
    exercise_move(&embedded("from"), shared(&server.url()).await).await;
    let server = PrivatePostgres::start().unwrap();
    exercise_move(&shared(&server.url()).await, embedded("to")).await;
}

fn store(home: &Home) -> String {
    match &home.postgres {
        Some(postgres) => postgres.url(),
        None => format!("sqlite:{}", home.path("data").display()),
    }
}

fn mover(from: &Home, to: &Home) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.env_remove("PGPASSWORD").args(["move-store", &store(from), &store(to)]);
    command
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn moved(from: &Home, to: &Home) -> String {
    told(&mover(from, to).output().unwrap())
}

/// A request with a key: the status, and the number that it was given.
fn keyed(server: &Server, kind: &str, key: &str, body: &str) -> (u16, String) {
    let path = format!("/v1/series/letter/{kind}");
    let (status, body) = send(server.http, &path, "application/json", Some(key), body);
    let given: Value = serde_json::from_str(&body).unwrap();
    (status, given["id"].as_str().unwrap_or(&body).to_owned())
}

fn document(server: &Server, key: &str) -> (u16, String) {
    keyed(server, "documents", key, &json!({"document": {"title": key}}).to_string())
}

fn reservation(server: &Server, key: &str) -> (u16, String) {
    keyed(server, "reservations", key, r#"{"seconds":3600}"#)
}

/// What a server says of a document. Times to the millisecond: an embedded store keeps no more.
fn looked_up(server: &Server, number: &str) -> Value {
    let mut said = ask(server.http, "GET", &format!("/v1/documents/{number}"), "").1;
    for value in said.as_object_mut().unwrap().values_mut() {
        if let Some(time) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
            *value = json!(time.as_millisecond());
        }
    }
    said
}

/// All that is known of the documents, but for the deadline of the reservation: that moves by the time in which a
/// folder was closed.
fn known(server: &Server, deadline: &mut i64) -> [Value; 5] {
    let mut known = NUMBERS.map(|number| looked_up(server, number));
    let due = known[2]["due"].take().as_i64().unwrap();
    assert!((*deadline..*deadline + 3_600_000).contains(&due), "{due} after {deadline}");
    *deadline = due;
    known
}

fn state(server: &Server, number: &str) -> String {
    looked_up(server, number)["state"].as_str().unwrap().to_owned()
}

/// All gaps, after they were looked for, each with the time when it was first seen.
fn gaps(server: &Server) -> Value {
    assert_eq!(post(server.http, "/v1/reconcile", "").0, 200);
    ask(server.http, "GET", "/v1/gaps", "").1
}

fn series(receiver: &Receiver) -> String {
    format!(
        "  letter: {{ pattern: \"L-{{seq}}\", key: letter, sink: {{ webhook: {{ url: \"http://127.0.0.1:{}/in\", secret: \
         whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, allow_private: true, timeout_ms: 300 }} }} }}\n  \
         ticket: {{ pattern: \"{{seq}}\", key: t }}\n",
        receiver.port
    )
}

/// Numbers from 1 on: delivered, dead, reserved, voided, and confirmed; and a crash. The last server is stopped.
fn fill(home: &Home, receiver: &Receiver) {
    let server = home.start_with(&series(receiver), &[("BATES_OUTBOX_TRIES", "2")]);
    assert_eq!(server.redis_cli(&["INCRBY", "t", "10"]), "10");
    assert_eq!(document(&server, "delivered"), (202, "L-1".into()));
    assert_eq!(document(&server, "poison"), (202, "L-2".into()));
    for (at, key) in [(3, "reserved"), (4, "voided"), (5, "confirmed")] {
        assert_eq!(reservation(&server, key), (201, format!("L-{at}")));
    }
    for (number, decision) in [("L-4", "void"), ("L-5", "confirm")] {
        let token = looked_up(&server, number)["event"].as_str().unwrap().to_owned();
        assert_eq!(post(server.http, &format!("/v1/reservations/{token}/{decision}"), "").0, 200);
    }
    while state(&server, "L-1") != "delivered" || state(&server, "L-2") != "dead" {}
    server.kill();
}

const NUMBERS: [&str; 5] = ["L-1", "L-2", "L-3", "L-4", "L-5"];

/// The same requests get the same numbers, from wherever they are now.
fn ask_again(server: &Server) {
    for (key, number) in [("delivered", "L-1"), ("poison", "L-2"), ("pending", "L-6"), ("late", "L-7")] {
        assert_eq!(document(server, key), (200, number.to_owned()), "{key}");
    }
    for (key, number) in [("reserved", "L-3"), ("voided", "L-4"), ("confirmed", "L-5")] {
        assert_eq!(reservation(server, key), (200, number.to_owned()), "{key}");
    }
    let other = keyed(server, "documents", "delivered", r#"{"document":{"title":"another"}}"#);
    assert_eq!(other.0, 422, "{}", other.1);
}

#[test]
fn an_installation_with_documents_moves_to_postgres_and_back() {
    let (folder, postgres, back) = (Home::folder(), Home::postgres(), Home::folder());
    let receiver = Receiver::start(Behaviour::RefusesPoison);
    fill(&folder, &receiver);
    receiver.behave(Behaviour::Fails);
    let patient = [("BATES_OUTBOX_TRIES", "50")];
    let server = folder.start_with(&series(&receiver), &patient);
    assert_eq!(document(&server, "pending"), (202, "L-6".into()));
    assert_eq!(document(&server, "late"), (202, "L-7".into()));
    while looked_up(&server, "L-6")["tries"] == 0 {}
    let mut deadline = looked_up(&server, "L-3")["due"].as_i64().unwrap();
    let (before, found) = (known(&server, &mut deadline), gaps(&server));
    let reasons: Vec<&Value> = found["gaps"].as_array().unwrap().iter().map(|gap| &gap["reason"]).collect();
    assert_eq!(reasons, ["outbox_dlq", "voided", "crash_skip"]);
    server.stop();
    let said = moved(&folder, &postgres);
    assert!(said.contains("moved 2 series with 2 scopes, 7 documents and 7 idempotency keys"), "{said}");
    let server = postgres.start_with(&series(&receiver), &patient);
    assert_eq!(known(&server, &mut deadline), before);
    assert_eq!(gaps(&server), found);
    ask_again(&server);
    assert_eq!(state(&server, "L-6"), "pending");
    receiver.behave(Behaviour::Takes);
    while ["L-6", "L-7"].iter().any(|number| state(&server, number) != "delivered") {}
    let mut taken = receiver.taken();
    taken.sort();
    taken.dedup();
    assert_eq!(taken, ["L-1", "L-6", "L-7"]);
    server.stop();
    let said = moved(&postgres, &back);
    assert!(said.contains("7 documents and 7 idempotency keys"), "{said}");
    let server = back.start(&series(&receiver));
    assert_eq!(known(&server, &mut deadline), before);
    assert_eq!((gaps(&server), state(&server, "L-6")), (found, "delivered".into()));
    ask_again(&server);
    let token = before[2]["event"].as_str().unwrap();
    assert_eq!(post(server.http, &format!("/v1/reservations/{token}/confirm"), "").0, 200);
    assert_eq!(document(&server, "new"), (202, "L-8".into()), "numbers go on");
    assert_eq!(server.redis_cli(&["INCR", "t"]), "33");
}

/// Somebody holds the table of keys: the move has copied the documents, and waits.
#[test]
fn a_move_that_is_killed_in_the_middle_is_finished_by_running_it_again() {
    let (folder, postgres) = (Home::folder(), Home::postgres());
    let receiver = Receiver::start(Behaviour::RefusesPoison);
    fill(&folder, &receiver);
    Server::node(&store(&postgres)).stop();
    postgres.query("DELETE FROM bates.series");
    let mut holder = Command::new(programs::find("psql").unwrap())
        .args(["--no-psqlrc", "--quiet", "--tuples-only", &store(&postgres)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = holder.stdin.take().unwrap();
    orders.write_all(b"BEGIN; LOCK TABLE bates.idempotency; SELECT 'held';\n").unwrap();
    let mut held = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut held).unwrap();
    let mut killed = mover(&folder, &postgres).stderr(Stdio::null()).spawn().unwrap();
    while postgres.query("SELECT count(*) FROM bates.document") != "5" {}
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(orders);
    holder.wait().unwrap();
    let refused = Server::try_node(&store(&postgres), &[], &[]).err().unwrap();
    assert!(refused.contains("is being filled from"), "{refused}");
    let said = moved(&folder, &postgres);
    assert!(said.contains("moved 2 series with 2 scopes, 5 documents and 5 idempotency keys"), "{said}");
    let server = postgres.start(&series(&receiver));
    assert_eq!(document(&server, "delivered"), (200, "L-1".into()));
    assert_eq!(reservation(&server, "voided"), (200, "L-4".into()));
    assert_eq!(document(&server, "new"), (202, "L-6".into()));
}

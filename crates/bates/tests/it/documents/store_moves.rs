//! An installation with documents and idempotency keys moves from a folder to PostgreSQL and back: the new store gives
//! the same answers, even if the move was killed halfway.

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

/// The tests of each store move between stores of the same kind; this one moves between the two kinds.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_either_kind_moves_to_the_other() {
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

fn move_command(from: &Home, to: &Home) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.env_remove("PGPASSWORD").args(["move-store", &store(from), &store(to)]);
    command
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run_move(from: &Home, to: &Home) -> String {
    printed(&move_command(from, to).output().unwrap())
}

/// Sends a request with a key, and returns the status and the number.
fn keyed(server: &Server, kind: &str, key: &str, body: &str) -> (u16, String) {
    let path = format!("/v1/series/letter/{kind}");
    let (status, body) = send(server.http, &path, "application/json", Some(key), body);
    let answer: Value = serde_json::from_str(&body).unwrap();
    (status, answer["id"].as_str().unwrap_or(&body).to_owned())
}

fn document(server: &Server, key: &str) -> (u16, String) {
    keyed(server, "documents", key, &json!({"document": {"title": key}}).to_string())
}

fn reservation(server: &Server, key: &str) -> (u16, String) {
    keyed(server, "reservations", key, r#"{"seconds":3600}"#)
}

/// A document as the server shows it. Times are in milliseconds, the resolution of an embedded store.
fn look_up(server: &Server, number: &str) -> Value {
    let mut document = ask(server.http, "GET", &format!("/v1/documents/{number}"), "").1;
    for value in document.as_object_mut().unwrap().values_mut() {
        if let Some(time) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
            *value = json!(time.as_millisecond());
        }
    }
    document
}

/// All documents, without the deadline of the reservation: it moves by the time for which a folder was closed.
fn documents(server: &Server, deadline: &mut i64) -> [Value; 5] {
    let mut documents = NUMBERS.map(|number| look_up(server, number));
    let due = documents[2]["due"].take().as_i64().unwrap();
    assert!((*deadline..*deadline + 3_600_000).contains(&due), "{due} after {deadline}");
    *deadline = due;
    documents
}

fn state(server: &Server, number: &str) -> String {
    look_up(server, number)["state"].as_str().unwrap().to_owned()
}

/// Reconciles, and returns all gaps with the time when each was first seen.
fn gaps(server: &Server) -> Value {
    assert_eq!(post(server.http, "/v1/reconcile", "").0, 200);
    let mut page = ask(server.http, "GET", "/v1/gaps", "").1;
    // Every start of a server reconciles.
    assert!(page.as_object_mut().unwrap().remove("reconciled_at").is_some_and(|at| at.is_string()));
    page
}

fn series(receiver: &Receiver) -> String {
    format!(
        "  letter: {{ pattern: \"L-{{seq}}\", key: letter, sink: {{ webhook: {{ url: \"http://127.0.0.1:{}/in\", secret: \
         whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, allow_private: true, timeout_ms: 300 }} }} }}\n  \
         ticket: {{ pattern: \"{{seq}}\", key: t }}\n",
        receiver.port
    )
}

/// Numbers five documents, which end delivered, dead, reserved, voided and confirmed, and kills the server.
fn fill(home: &Home, receiver: &Receiver) {
    let server = home.start_with(&series(receiver), &[("BATES_OUTBOX_TRIES", "2")]);
    assert_eq!(server.redis_cli(&["INCRBY", "t", "10"]), "10");
    assert_eq!(document(&server, "delivered"), (202, "L-1".into()));
    assert_eq!(document(&server, "poison"), (202, "L-2".into()));
    for (at, key) in [(3, "reserved"), (4, "voided"), (5, "confirmed")] {
        assert_eq!(reservation(&server, key), (201, format!("L-{at}")));
    }
    for (number, decision) in [("L-4", "void"), ("L-5", "confirm")] {
        let token = look_up(&server, number)["event"].as_str().unwrap().to_owned();
        assert_eq!(post(server.http, &format!("/v1/reservations/{token}/{decision}"), "").0, 200);
    }
    while state(&server, "L-1") != "delivered" || state(&server, "L-2") != "dead" {}
    server.kill();
}

const NUMBERS: [&str; 5] = ["L-1", "L-2", "L-3", "L-4", "L-5"];

/// Repeats all requests: each gets the same number from the current store.
fn repeat_requests(server: &Server) {
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
    let many_attempts = [("BATES_OUTBOX_TRIES", "50")];
    let server = folder.start_with(&series(&receiver), &many_attempts);
    assert_eq!(document(&server, "pending"), (202, "L-6".into()));
    assert_eq!(document(&server, "late"), (202, "L-7".into()));
    while look_up(&server, "L-6")["tries"] == 0 {}
    let mut deadline = look_up(&server, "L-3")["due"].as_i64().unwrap();
    let (before, gaps_before) = (documents(&server, &mut deadline), gaps(&server));
    let reasons: Vec<&Value> =
        gaps_before["gaps"].as_array().unwrap().iter().map(|gap| &gap["reason"]).collect();
    assert_eq!(reasons, ["outbox_dlq", "voided", "crash_skip"]);
    server.stop();
    let printed = run_move(&folder, &postgres);
    assert!(
        printed.contains("moved 2 series with 2 scopes, 7 documents and 7 idempotency keys"),
        "{printed}"
    );
    let server = postgres.start_with(&series(&receiver), &many_attempts);
    assert_eq!(documents(&server, &mut deadline), before);
    assert_eq!(gaps(&server), gaps_before);
    repeat_requests(&server);
    assert_eq!(state(&server, "L-6"), "pending");
    receiver.behave(Behaviour::Accepts);
    while ["L-6", "L-7"].iter().any(|number| state(&server, number) != "delivered") {}
    let mut accepted = receiver.accepted();
    accepted.sort();
    accepted.dedup();
    assert_eq!(accepted, ["L-1", "L-6", "L-7"]);
    server.stop();
    let printed = run_move(&postgres, &back);
    assert!(printed.contains("7 documents and 7 idempotency keys"), "{printed}");
    let server = back.start(&series(&receiver));
    assert_eq!(documents(&server, &mut deadline), before);
    assert_eq!((gaps(&server), state(&server, "L-6")), (gaps_before, "delivered".into()));
    repeat_requests(&server);
    let token = before[2]["event"].as_str().unwrap();
    assert_eq!(post(server.http, &format!("/v1/reservations/{token}/confirm"), "").0, 200);
    assert_eq!(document(&server, "new"), (202, "L-8".into()), "numbering continues");
    assert_eq!(server.redis_cli(&["INCR", "t"]), "33");
}

/// A lock on the table of keys stops the move after it has copied the documents.
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
    let mut holder_input = holder.stdin.take().unwrap();
    holder_input.write_all(b"BEGIN; LOCK TABLE bates.idempotency; SELECT 'held';\n").unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut killed = move_command(&folder, &postgres).stderr(Stdio::null()).spawn().unwrap();
    while postgres.query("SELECT count(*) FROM bates.document") != "5" {}
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(holder_input);
    holder.wait().unwrap();
    let refused = Server::try_node(&store(&postgres), &[], &[]).err().unwrap();
    assert!(refused.contains("is being filled from"), "{refused}");
    let printed = run_move(&folder, &postgres);
    assert!(
        printed.contains("moved 2 series with 2 scopes, 5 documents and 5 idempotency keys"),
        "{printed}"
    );
    let server = postgres.start(&series(&receiver));
    assert_eq!(document(&server, "delivered"), (200, "L-1".into()));
    assert_eq!(reservation(&server, "voided"), (200, "L-4".into()));
    assert_eq!(document(&server, "new"), (202, "L-6".into()));
}

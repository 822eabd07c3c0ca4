//! The operations log on real stores: every change is in it with its caller, and a removed or changed row is found.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::super::audit::{ask_as, ask_with};
use super::super::cluster::Cluster;
use super::super::running::Server;
use super::{ACME, Rig};

const SHARED: &str = "the shared secret";

fn start(data: &Path) -> Server {
    Server::start_with(data, "127.0.0.1:0", &[("BATES_SECRET", SHARED)])
}

/// The most memory that a server had, in megabytes.
fn resident_mb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn pages_of_large_records_have_fewer_and_are_counted_before_they_are_read() {
    const RECORDS: usize = 10_000;
    let cluster = Cluster::start_with(&format!("secret: {SHARED}\nmemory_max_mb: 16\n"));
    let node = cluster.node();
    cluster.query(&format!(
        "INSERT INTO bates.operation SELECT 'large', number, digest, digest, gen_random_uuid(),
             now() + number * interval '1 microsecond', 'ops', 'http', 'series_changed', 's', '',
             repeat('x', 4000), repeat('y', 4000) FROM generate_series(1, {RECORDS}) AS number,
             decode(repeat('00', 32), 'hex') AS digest"
    ));
    let before = resident_mb(&node);
    for path in ["/v1/operations?who=ops&limit=10000", "/v1/operations/chains/large?limit=10000"] {
        let (mut after, mut seen, mut pages) = (String::new(), BTreeSet::new(), 0);
        loop {
            let (status, page) = ask_as(node.http, SHARED, &format!("GET {path}{after}"), "");
            assert_eq!(status, 200, "{page}");
            let operations = page["operations"].as_array().unwrap();
            seen.extend(operations.iter().map(|operation| operation["number"].as_u64().unwrap()));
            pages += 1;
            let Some(next) = page["after"].as_str() else { break };
            after = format!("&after={}", next.replace('|', "%7C"));
        }
        assert_eq!((seen.len(), pages > 50), (RECORDS, true), "{path}: {pages} pages");
    }
    let csv = |limit: usize| {
        let request = format!("GET /v1/operations?who=ops&limit={limit}");
        ask_with(node.http, SHARED, "Accept: text/csv\r\n", &request, "")
    };
    let (status, refused) = csv(10_000);
    assert!(status == 422 && refused.contains("set limit to"), "a table says when it lacks rows: {refused}");
    let (status, table) = csv(100);
    assert_eq!((status, table.lines().count()), (200, 101));
    let growth = resident_mb(&node) - before;
    assert!(growth < 40, "resident memory grew by {growth} MB");
}

/// Runs `bates audit verify`: its exit code and its output.
fn verify(port: u16, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bates"))
        .args(["audit", "verify", "--url", &format!("http://127.0.0.1:{port}")])
        .args(words)
        .env("BATES_SECRET", SHARED)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn kinds(port: u16) -> Vec<(String, String)> {
    let (status, page) = ask_as(port, SHARED, "GET /v1/operations", "");
    assert_eq!(status, 200, "{page}");
    let text = |operation: &Value, field: &str| operation[field].as_str().unwrap_or_default().to_owned();
    let operations = page["operations"].as_array().expect("operations").iter();
    operations.map(|operation| (text(operation, "kind"), text(operation, "who"))).collect()
}

#[test]
fn every_change_of_a_caller_is_recorded_with_its_name() {
    let rig = Rig::start();
    let done = |caller: &str, request: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = rig.ask(caller, request, &body);
        assert!(status < 300, "{request}: {answer}");
        answer
    };
    done(ACME, "PUT /v1/series/acme.new", json!({ "pattern": "N-{seq}" }));
    done(ACME, "PATCH /v1/series/acme.new", json!({ "audit": true }));
    done("define", "PATCH /v1/series/acme.new", json!({ "audit": false }));
    done(ACME, "PATCH /v1/series/acme.new", json!({ "promise": "gapless" }));
    let document = done(ACME, "POST /v1/series/acme.letter/documents", json!({ "document": { "a": 1 } }));
    let retry = format!("POST /v1/outbox/{}/retry", document["event"].as_str().unwrap());
    rig.ask("operate", &retry, "");
    done(ACME, "DELETE /v1/series/acme.new", Value::Null);
    // Refused, and changes that are none: not recorded.
    assert_eq!(rig.ask("other", "DELETE /v1/series/acme.letter", "").0, 404);
    assert_eq!(rig.ask("read", "PATCH /v1/series/acme.letter", "{}").0, 403);
    done(ACME, "POST /v1/series/acme.letter/next", Value::Null);
    let (_, log) = rig.ask("shared", "GET /v1/operations", "");
    let of = |operation: &Value, field: &str| operation[field].as_str().unwrap_or_default().to_owned();
    let operations = log["operations"].as_array().unwrap();
    let seen: Vec<_> = operations
        .iter()
        .filter(|operation| !of(operation, "kind").starts_with("document"))
        .map(|operation| (of(operation, "kind"), of(operation, "who")))
        .collect();
    let expected = [
        ("configuration_changed", "configuration"),
        ("configuration_changed", "configuration"),
        ("series_created", ACME),
        ("series_changed", ACME),
        ("series_changed", "define"),
        ("promise_changed", ACME),
        ("series_changed", ACME),
        ("series_retired", ACME),
    ];
    assert_eq!(seen, expected.map(|(kind, who)| (kind.to_owned(), who.to_owned())), "{log}");
    let switched_off = operations.iter().find(|operation| of(operation, "who") == "define").unwrap();
    assert!(of(switched_off, "before").contains(r#""audit":true"#), "{switched_off}");
    assert!(!of(switched_off, "after").contains("audit"), "{switched_off}");
    // Another tenant sees nothing of it, and cannot shorten it.
    for caller in [ACME, "read"] {
        let (_, log) = rig.ask(caller, "GET /v1/operations", "");
        let operations = log["operations"].as_array().unwrap();
        assert!(!operations.is_empty(), "{log}");
        for hidden in ["chain", "number", "previous", "digest"] {
            assert!(operations.iter().all(|operation| operation[hidden].is_null()), "{caller}: {log}");
        }
        let csv = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["operations", "--csv", "--url", &format!("http://127.0.0.1:{}", rig.server.http)])
            .env("BATES_SECRET", super::secret(caller))
            .output()
            .unwrap();
        let csv = String::from_utf8(csv.stdout).unwrap();
        assert!(
            csv.lines().count() > 1 && csv.lines().skip(1).all(|line| line.ends_with(",\"\",,,")),
            "{csv}"
        );
    }
    assert!(operations.iter().all(|operation| operation["number"].is_u64()), "{log}");
    let (_, other) = rig.ask_text("other", "GET /v1/operations", "");
    assert!(!other.contains("acme"), "{other}");
    for (caller, request) in [(ACME, "GET /v1/operations/chains"), ("admin", "GET /v1/operations/chains")] {
        assert_eq!(rig.ask(caller, request, "").0, 403, "{caller}");
    }
}

#[test]
fn secrets_are_in_no_record() {
    let rig = Rig::start();
    let grant = json!({ "name": "helper", "grant": { "may": ["read"] } }).to_string();
    let (_, added) = rig.ask("shared", "POST /v1/tokens", &grant);
    let secret = added["secret"].as_str().expect("a secret");
    let (_, log) = rig.ask_text("shared", "GET /v1/operations", "");
    assert!(log.contains("token_added") && !log.contains(secret) && !log.contains("the acme one"), "{log}");
}

#[test]
fn a_start_with_another_configuration_is_recorded_and_one_with_the_same_is_not() {
    const OTHER: &str = "another shared secret";
    let data = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        start(data.path()).stop();
    }
    let changed = [("BATES_SECRET", SHARED), ("BATES_SERIES__SHORT__AUDIT", "true")];
    let server = Server::start_with(data.path(), "127.0.0.1:0", &changed);
    let expected = ("configuration_changed".to_owned(), "configuration".to_owned());
    assert_eq!(kinds(server.http), [expected.clone(), expected.clone(), expected.clone()]);
    server.stop();
    let changed = [("BATES_SECRET", OTHER), ("BATES_SERIES__SHORT__AUDIT", "true")];
    let server = Server::start_with(data.path(), "127.0.0.1:0", &changed);
    let (_, log) = ask_as(server.http, OTHER, "GET /v1/operations", "");
    let operations = log["operations"].as_array().unwrap();
    assert!(operations.len() == 4 && !log.to_string().contains(OTHER), "{log}");
    let marks = |state: &str| {
        let state: Value = serde_json::from_str(operations[3][state].as_str().unwrap()).unwrap();
        state["secret_marks"]["the shared secret"].as_str().unwrap().to_owned()
    };
    assert_ne!(marks("before"), marks("after"), "another secret");
}

/// Removes or changes each row of a stopped store in turn, as someone with a shell could.
#[test]
fn a_removed_or_changed_row_of_a_data_folder_is_found() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path());
    for at in 0..4 {
        let path = format!("PUT /v1/series/new{at}");
        assert_eq!(ask_as(server.http, SHARED, &path, r#"{"pattern":"{seq}"}"#).0, 201);
    }
    let (code, output) = verify(server.http, &[]);
    assert!(code == Some(0) && output.contains("6 records"), "{output}");
    server.stop();
    let tampering = [
        "DELETE FROM operation WHERE number = 1",
        "DELETE FROM operation WHERE number = 3",
        "DELETE FROM operation WHERE number = 6",
        "DELETE FROM operation",
        "UPDATE operation SET caller = 'mallory' WHERE number = 2",
        "UPDATE operation SET after = NULL WHERE number = 4",
        "UPDATE operation SET number = number + 10",
        "UPDATE operation_chain SET number = 5, digest = (SELECT digest FROM operation WHERE number = 5)",
        "DELETE FROM operation_chain",
        "UPDATE operation SET series = '' WHERE number = 4",
        "UPDATE operation SET kind = 'nothing'",
        "UPDATE operation SET digest = x'00' WHERE number = 3",
        "UPDATE operation SET at = 0 WHERE number = 1",
        "UPDATE operation_chain SET digest = x'00'",
        "UPDATE operation_chain SET number = 2, digest = (SELECT digest FROM operation WHERE number = 2)",
    ];
    for sql in tampering {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(data.path()).unwrap().map(Result::unwrap) {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let database = rusqlite::Connection::open(copy.path().join("bates.db")).unwrap();
        database.execute(sql, []).unwrap();
        drop(database);
        let server = start(copy.path());
        let is_found = |when: &str| {
            let (code, output) = verify(server.http, &[]);
            assert!(code == Some(1) && output.contains("no  "), "{sql}, {when}: {output}");
        };
        is_found("at the start");
        // The server goes on, and overwrites no record.
        let before = kinds(server.http).len();
        assert_eq!(
            ask_as(server.http, SHARED, "PUT /v1/series/later", r#"{"pattern":"{seq}"}"#).0,
            201,
            "{sql}"
        );
        assert_eq!(ask_as(server.http, SHARED, "POST /v1/series/later/next", "").0, 200, "{sql}");
        assert_eq!(kinds(server.http).len(), before + 1, "{sql}");
        is_found("after another record");
        server.stop();
    }
}

#[test]
fn a_record_is_not_replaced_after_the_head_of_its_chain_was_set_back() {
    let data = tempfile::tempdir().unwrap();
    let create = |server: &Server, name: &str| {
        let body = r#"{"pattern":"{seq}"}"#;
        assert_eq!(ask_as(server.http, SHARED, &format!("PUT /v1/series/{name}"), body).0, 201);
    };
    let server = start(data.path());
    for name in ["one", "two", "three"] {
        create(&server, name);
    }
    let (_, heads) = verify(server.http, &["--json"]);
    server.stop();
    let records = || {
        let database = rusqlite::Connection::open(data.path().join("bates.db")).unwrap();
        let mut query = database.prepare("SELECT hex(id) FROM operation ORDER BY number").unwrap();
        let ids = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        ids.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let before = records();
    let set_back = "UPDATE operation_chain
                    SET number = 2, digest = (SELECT digest FROM operation WHERE number = 2)";
    let change = |sql: &str| {
        rusqlite::Connection::open(data.path().join("bates.db")).unwrap().execute_batch(sql).unwrap();
    };
    change(set_back);
    let server = start(data.path());
    create(&server, "four");
    let (code, output) = verify(server.http, &[]);
    assert!(code == Some(1) && output.contains("does not follow the record before it"), "{output}");
    server.stop();
    assert_eq!(records()[..before.len()], before, "all records are there, and new ones after them");
    // With the tail removed as well, only a head that was kept elsewhere shows it.
    change(&format!("{set_back}; DELETE FROM operation WHERE number > 2"));
    let server = start(data.path());
    let (code, output) = verify(server.http, &[]);
    assert_eq!(code, Some(0), "{output}");
    let known = data.path().join("heads.jsonl");
    std::fs::write(&known, heads).unwrap();
    let (code, output) = verify(server.http, &["--known", known.to_str().unwrap()]);
    assert!(code == Some(1) && output.contains("missing"), "{output}");
}

/// A chain that was rewritten is consistent; the head that was printed earlier shows it.
#[test]
fn a_chain_that_was_rewritten_or_is_gone_is_found_by_its_earlier_head() {
    let cluster =
        Cluster::start_with(&format!("secret: {SHARED}\nseries:\n  a: {{ pattern: \"{{seq}}\" }}\n"));
    let node = cluster.node();
    assert_eq!(ask_as(node.http, SHARED, "PUT /v1/series/new", r#"{"pattern":"{seq}"}"#).0, 201);
    let (code, heads) = verify(node.http, &["--json"]);
    assert_eq!(code, Some(0), "{heads}");
    let known = cluster.file("heads.jsonl", &heads);
    assert_eq!(verify(node.http, &["--known", &known]).0, Some(0));
    cluster.query(
        "UPDATE bates.operation_chain SET number = 1, digest = (SELECT digest FROM bates.operation WHERE number = 1)",
    );
    assert_eq!(ask_as(node.http, SHARED, "PUT /v1/series/later", r#"{"pattern":"{seq}"}"#).0, 201);
    assert!(
        kinds(node.http).iter().filter(|(kind, _)| kind == "series_created").count() == 2,
        "no record is lost"
    );
    assert_eq!(verify(node.http, &[]).0, Some(1), "the head was set back");
    cluster.query("DELETE FROM bates.operation_chain");
    assert_eq!(verify(node.http, &[]).0, Some(1), "records without a head");
    cluster.query("DELETE FROM bates.operation");
    let (code, output) = verify(node.http, &[]);
    assert_eq!(code, Some(0), "nothing is left that could show it: {output}");
    let (code, output) = verify(node.http, &["--known", &known]);
    assert!(code == Some(1) && output.contains("missing"), "{output}");
}

/// Commands on the store name the user of the system.
#[test]
fn a_floor_that_a_command_raised_is_recorded_with_its_user() {
    let cluster =
        Cluster::start_with(&format!("secret: {SHARED}\nseries:\n  a: {{ pattern: \"{{seq}}\" }}\n"));
    let node = cluster.node();
    let (is_good, output) = cluster.bates(&["floor", "a", "5000"]);
    assert!(is_good, "{output}");
    let (_, log) = ask_as(node.http, SHARED, "GET /v1/operations?kind=floor_raised", "");
    let [raised] = &**log["operations"].as_array().unwrap() else { panic!("one operation: {log}") };
    assert_eq!((raised["how"].as_str(), raised["before"].as_str()), (Some("command"), Some("1")));
    assert_eq!((raised["after"].as_str(), raised["series"].as_str()), (Some("5000"), Some("a")));
    assert!(raised["who"].as_str().unwrap().contains(" on "), "{raised}");
    assert_eq!(verify(node.http, &[]).0, Some(0));
}

/// Documents of two series are dead, because nothing listens where their sink delivers.
#[test]
fn abandoning_all_dead_documents_is_recorded_for_each_series() {
    let sink = "sink: { webhook: { url: \"http://127.0.0.1:1/in\", allow_private: true, secret: \
                whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw } }";
    let cluster = Cluster::start_with(&format!(
        "secret: {SHARED}\noutbox_tries: 1\ntokens:\n  acme: {{ secret: the acme one, may: [read], series: [\"acme.*\"] }}\n\
         series:\n  acme.letter: {{ pattern: \"L-{{seq}}\", {sink} }}\n  plain: {{ pattern: \"P-{{seq}}\", {sink} }}\n"
    ));
    let node = cluster.node();
    for series in ["acme.letter", "plain", "plain"] {
        let path = format!("POST /v1/series/{series}/documents");
        assert_eq!(ask_as(node.http, SHARED, &path, r#"{"document":{"a":1}}"#).0, 202);
    }
    let counts = || ask_as(node.http, SHARED, "GET /v1/outbox/counts", "").1;
    while counts() != json!({ "acme.letter": { "dead": 1 }, "plain": { "dead": 2 } }) {
        std::thread::yield_now();
    }
    let (_, abandoned) = ask_as(node.http, SHARED, "POST /v1/outbox/abandon", "");
    assert_eq!(abandoned, json!({ "count": 3 }));
    let seen = |secret: &str| {
        let (_, log) = ask_as(node.http, secret, "GET /v1/operations?kind=documents_abandoned", "");
        let operations = log["operations"].as_array().unwrap().iter();
        let text = |operation: &Value| format!("{} {}", operation["series"], operation["after"]);
        operations.map(text).collect::<Vec<_>>()
    };
    assert_eq!(seen(SHARED), [r#""acme.letter" "abandoned: 1""#, r#""plain" "abandoned: 2""#]);
    assert_eq!(seen("the acme one"), [r#""acme.letter" "abandoned: 1""#]);
}

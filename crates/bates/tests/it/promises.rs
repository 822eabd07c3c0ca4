//! The promise of a series: pinned in the store, and changed only by `bates series promise` or `PATCH`.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::http::ask;
use super::running::{Client, Server};

const ORDERED: &str = "series:\n  ticket: { pattern: \"{seq}\", promise: ordered, key: \"ticket:{name}\" }\n";
const UNIQUE: &str = "series:\n  ticket: { pattern: \"{seq}\", promise: unique, key: \"ticket:{name}\" }\n";

#[test]
fn two_nodes_creating_a_series_with_different_promises_get_one_conflict() {
    let cluster = Cluster::start();
    let nodes: Vec<Server> = (0..2).map(|_| cluster.node()).collect();
    for round in 0..20 {
        let path = format!("/v1/series/tenant{round}");
        let bodies =
            [r#"{"pattern":"{seq}","promise":"gapless"}"#, r#"{"pattern":"{seq}","promise":"unique"}"#];
        let answers: Vec<(u16, Value)> = thread::scope(|scope| {
            let put = |(node, body): (&Server, &'static str)| {
                let (port, path) = (node.http, &path);
                scope.spawn(move || ask(port, "PUT", path, body))
            };
            let requests: Vec<_> = nodes.iter().zip(bodies).map(put).collect();
            requests.into_iter().map(|request| request.join().unwrap()).collect()
        });
        let mut statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{answers:?}");
        let created = answers.iter().find(|(status, _)| *status == 201).unwrap();
        for node in &nodes {
            let (_, found) = ask(node.http, "GET", &path, "");
            assert_eq!(found["promise"], created.1["promise"], "{found}");
        }
    }
}

#[test]
fn two_nodes_creating_a_series_with_different_limits_get_one_conflict() {
    let cluster = Cluster::start();
    let nodes: Vec<Server> = (0..2).map(|_| cluster.node()).collect();
    for round in 0..20 {
        let path = format!("/v1/series/tenant{round}");
        let bodies = [r#"{"pattern":"{seq}"}"#, r#"{"pattern":"{seq}","limits":{"scopes_max":7}}"#];
        let answers: Vec<u16> = thread::scope(|scope| {
            let put = |(node, body): (&Server, &'static str)| {
                let (port, path) = (node.http, &path);
                scope.spawn(move || ask(port, "PUT", path, body).0)
            };
            let requests: Vec<_> = nodes.iter().zip(bodies).map(put).collect();
            requests.into_iter().map(|request| request.join().unwrap()).collect()
        });
        assert!(answers == [201, 409] || answers == [409, 201], "{answers:?}");
    }
}

#[test]
fn a_file_with_another_promise_is_refused_with_the_command_that_changes_it() {
    let cluster = Cluster::start_with(UNIQUE);
    let node = cluster.node();
    assert_eq!(node.redis_cli(&["INCR", "ticket:a"]), "1");
    let other = cluster.file("other.yaml", ORDERED);
    let environment = [("BATES_CONFIG", &*other)];
    let refused = Server::try_node(&cluster.postgres.url(), &[], &environment).err().unwrap();
    assert!(refused.contains("bates series promise ticket ordered"), "{refused}");
    // The command works with either file, while nodes run.
    cluster.file("bates.yaml", ORDERED);
    let (is_done, output) = cluster.bates(&["series", "promise", "ticket", "ordered"]);
    assert!(is_done && output.contains("promises ordered from now on"), "{output}");
    let second = Server::try_node(&cluster.postgres.url(), &[], &environment).unwrap();
    let mut last = 1;
    for at in 0..20 {
        let next_node = if at % 2 == 0 { &node } else { &second };
        let number: u64 = next_node.redis_cli(&["INCR", "ticket:a"]).parse().unwrap();
        assert!(number > last, "{number} after {last}: a node keeps the old promise");
        last = number;
    }
    for node in [&node, &second] {
        let (_, listed) = ask(node.http, "GET", "/v1/series/ticket", "");
        assert_eq!(listed["promise"], "ordered", "clients decide by it whether to retry");
    }
}

/// The command may be killed after it changed the promise, while a node holds numbers from before.
#[test]
fn repeating_the_command_finishes_an_interrupted_promise_change() {
    let cluster = Cluster::start_with(UNIQUE);
    let (suspended, other) = (cluster.node(), cluster.node());
    assert_eq!(suspended.redis_cli(&["INCR", "ticket:a"]), "1");
    suspended.signal("STOP");
    cluster.query("UPDATE bates.series SET promise = 'ordered' WHERE name = 'ticket'");
    cluster.query("UPDATE bates.store SET revision = revision + 1");
    let (is_done, output) = cluster.bates(&["series", "promise", "ticket", "ordered", "--wait", "1"]);
    assert!(!is_done && output.contains(&format!("process {}", suspended.pid())), "{output}");
    suspended.signal("CONT");
    let (is_done, output) = cluster.bates(&["series", "promise", "ticket", "ordered", "--wait", "60"]);
    assert!(is_done && output.contains("promises ordered, as before"), "{output}");
    let number = |node: &Server| node.redis_cli(&["INCR", "ticket:a"]).parse::<u64>().unwrap();
    let (first, second) = (number(&other), number(&suspended));
    assert!(first < second, "{first}, then {second}");
}

#[test]
fn a_series_with_a_shared_pool_stays_unique() {
    let pooled = "series:\n  ticket: { pattern: \"{seq}\", pool: { redis: \"redis://127.0.0.1:1\", key: t, size: 9 } }\n";
    let cluster = Cluster::start_with(pooled);
    assert!(cluster.bates(&["migrate"]).0);
    for promise in ["ordered", "gapless"] {
        let (is_done, output) = cluster.bates(&["series", "promise", "ticket", promise]);
        assert!(!is_done && output.contains("has a shared pool"), "{output}");
    }
    assert_eq!(cluster.query("SELECT promise FROM bates.series"), "unique");
}

/// Positions before the change count as issued, and every position after it is in the ledger.
#[test]
fn a_series_made_gapless_under_load_has_no_gap_from_then_on_and_reports_no_earlier_loss() {
    let series = r#"{"pattern":"{seq}","key":"tenant:{name}"}"#;
    let cluster = Cluster::start();
    // A slow machine must not fail a node.
    let long_timeout = [("BATES_STORE_TIMEOUT_MS", "60000")];
    let node = || Server::try_node(&cluster.postgres.url(), &["--new"], &long_timeout).unwrap();
    let nodes: Vec<Server> = (0..2).map(|_| node()).collect();
    assert_eq!(ask(nodes[0].http, "PUT", "/v1/series/tenant", series).0, 201);
    let is_changed = AtomicBool::new(false);
    let mut numbers: Vec<u64> = thread::scope(|scope| {
        let take = |node: &Server| {
            let (port, is_changed) = (node.port, &is_changed);
            scope.spawn(move || {
                let mut client = Client::connect(port).unwrap();
                let mut next = || {
                    let answer = client.incr_raw("tenant:a").unwrap();
                    let number = answer.strip_prefix(':').and_then(|number| number.parse().ok());
                    number.unwrap_or_else(|| panic!("{answer}"))
                };
                let mut numbers: Vec<u64> = Vec::new();
                while !is_changed.load(Ordering::SeqCst) {
                    numbers.push(next());
                }
                // From here on every number is of the gapless series.
                numbers.extend((0..300).map(|_| next()));
                numbers
            })
        };
        let takers: Vec<_> = nodes.iter().map(take).collect();
        let changed = ask(nodes[1].http, "PATCH", "/v1/series/tenant", r#"{"promise":"gapless"}"#);
        is_changed.store(true, Ordering::SeqCst);
        assert_eq!((changed.0, &changed.1["promise"]), (200, &Value::from("gapless")), "{changed:?}");
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a number came twice");
    let condition = "WHERE series = 'tenant' AND scope = 'name=a'";
    let since: u64 =
        cluster.query(&format!("SELECT gapless_from FROM bates.cursor {condition}")).parse().unwrap();
    let next: u64 = cluster.query(&format!("SELECT next FROM bates.cursor {condition}")).parse().unwrap();
    assert!(since > 1 && next > since, "it became gapless at {since} of {next}");
    let issued = numbers.iter().filter(|number| **number >= since).count() as u64;
    assert_eq!(issued, next - since, "every number since then was answered");
    let (status, reconciled) = ask(nodes[0].http, "POST", "/v1/reconcile", "");
    assert_eq!(status, 200, "{reconciled}");
    let untracked = "SELECT count(*) FROM bates.gap WHERE series = 'tenant' AND reason = 'untracked_loss'";
    assert_eq!(cluster.query(untracked), "0");
}

#[test]
fn the_command_and_the_api_change_a_promise_in_the_embedded_store() {
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path());
    assert_eq!(ask(server.http, "PUT", "/v1/series/tenant", r#"{"pattern":"{seq}"}"#).0, 201);
    let next = |server: &Server| ask(server.http, "POST", "/v1/series/tenant/next", "").1["ids"][0].clone();
    assert_eq!(next(&server), "1");
    let changed = ask(server.http, "PATCH", "/v1/series/tenant", r#"{"promise":"ordered"}"#);
    assert_eq!(changed.0, 200, "{changed:?}");
    assert_eq!(next(&server), "2");
    let unknown = ask(server.http, "PATCH", "/v1/series/tenant", r#"{"promise":"perfect"}"#);
    assert_eq!(unknown.0, 422, "{unknown:?}");
    server.stop();
    let output = Command::new(env!("CARGO_BIN_EXE_bates"))
        .args(["series", "promise", "tenant", "gapless", "--data"])
        .arg(data.path())
        .env_remove("BATES_STORE")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && stdout.contains("promises gapless from now on"), "{output:?}");
    let server = Server::start(data.path());
    assert_eq!(ask(server.http, "GET", "/v1/series/tenant", "").1["promise"], "gapless");
    assert_eq!(next(&server), "3");
    assert_eq!(ask(server.http, "POST", "/v1/reconcile", "").0, 200);
    let gaps = ask(server.http, "GET", "/v1/gaps?series=tenant", "").1;
    assert_eq!(gaps["gaps"].as_array().map(Vec::len), Some(0), "{gaps}");
}

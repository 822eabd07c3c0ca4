//! Several nodes on one PostgreSQL: the promises hold across nodes that are killed, suspended or cut off.

use bates_testkit::history::{Gaps, History, Rules};

use super::cluster::{Cluster, Switching};
use super::http::{ask, exchange};
use super::running::{Client, Server};

const ORDERED: Rules = Rules { is_ordered: true, gaps: Gaps::Any };
const UNIQUE: Rules = Rules { is_ordered: false, gaps: Gaps::Any };

fn keys(series: &str, count: u32) -> Vec<String> {
    (0..count).map(|key| format!("{series}:{key}")).collect()
}

#[test]
fn nodes_share_cursors_and_a_clean_stop_releases_ranges() {
    let cluster = Cluster::start();
    let (one, two) = (cluster.node(), cluster.node());
    for turn in 0..10 {
        assert_eq!(one.redis_cli(&["INCR", "counter:a"]), (2 * turn + 1).to_string());
        assert_eq!(two.redis_cli(&["INCR", "counter:a"]), (2 * turn + 2).to_string(), "ordered across nodes");
    }
    assert_eq!(one.redis_cli(&["INCR", "ticket:a"]), "1");
    assert_eq!(two.redis_cli(&["INCR", "ticket:a"]), "33", "each node holds a range of its own");
    let stderr = two.stop();
    assert!(stderr.contains("31 unused numbers given back, 0 gaps left"), "{stderr}");
    let stderr = one.stop();
    assert!(
        stderr.contains("0 unused numbers given back, 31 gaps left"),
        "a later range was granted since: {stderr}"
    );
    assert_eq!(cluster.node().redis_cli(&["INCR", "ticket:a"]), "34");
    let held = cluster.query("SELECT first || '-' || last FROM bates.held_range ORDER BY first");
    assert_eq!(held, "34-65", "only the running node holds a range");
    let lost = cluster.query("SELECT first || '-' || last || ' ' || reason FROM bates.lost");
    assert_eq!(lost, "2-32 lease_lost", "the range that could not be released is explained");
}

/// Clients switch between three nodes while one after the other is killed and replaced.
#[test]
fn repeated_kills_among_three_nodes_repeat_no_number_and_keep_the_order() {
    const KILLS: usize = 9;
    let cluster = Cluster::start();
    let mut nodes: Vec<Server> = (0..3).map(|_| cluster.node()).collect();
    let all: Vec<&Server> = nodes.iter().collect();
    let ordered = Switching::begin(6, &keys("counter", 5), &all);
    let unique = Switching::begin(6, &keys("ticket", 20), &all);
    let gapless = Switching::begin(6, &keys("invoice", 3), &all);
    for kill in 0..KILLS {
        for load in [&ordered, &unique, &gapless] {
            load.wait_for(100);
        }
        let at = kill % 3;
        let fresh = cluster.node();
        std::mem::replace(&mut nodes[at], fresh).kill();
        for load in [&ordered, &unique, &gapless] {
            load.replace(at, &nodes[at]);
        }
    }
    for load in [&ordered, &unique, &gapless] {
        load.wait_for(200);
    }
    let (ordered, unique, gapless) = (ordered.end(), unique.end(), gapless.end());
    assert_eq!(ordered.check(ORDERED), []);
    assert_eq!(unique.check(UNIQUE), []);
    // A kill can lose the number of each client that waits for an answer; nothing else is missing.
    let gaps = Gaps::AtMost { start: 1, skipped_max: 6 * KILLS as u64 };
    assert_eq!(gapless.check(Rules { is_ordered: true, gaps }), []);
    assert!((0..3).all(|key| cluster.is_gapless(&key.to_string())), "the ledger has every position");
    assert!(ordered.len() + unique.len() + gapless.len() > 3_000);
}

#[test]
fn fifty_writers_on_three_nodes_leave_no_gap_and_meet_no_deadlock() {
    let cluster = Cluster::start();
    let nodes: Vec<Server> = (0..3).map(|_| cluster.node()).collect();
    let load = Switching::begin(50, &keys("invoice", 4), &nodes.iter().collect::<Vec<_>>());
    load.wait_for(5_000);
    let history = load.end();
    let gaps = Gaps::AtMost { start: 1, skipped_max: 0 };
    assert_eq!(history.check(Rules { is_ordered: true, gaps }), []);
    assert!((0..4).all(|key| cluster.is_gapless(&key.to_string())));
    assert_eq!(cluster.query("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), "0");
}

/// The nodes outlive their database, and continue by themselves when it is back.
#[test]
fn killing_postgres_under_load_repeats_no_number() {
    let mut cluster = Cluster::start();
    let nodes: Vec<Server> = (0..3).map(|_| cluster.node()).collect();
    let all: Vec<&Server> = nodes.iter().collect();
    let ordered = Switching::begin(6, &keys("counter", 5), &all);
    let unique = Switching::begin(6, &keys("ticket", 20), &all);
    let gapless = Switching::begin(6, &keys("invoice", 3), &all);
    for _ in 0..4 {
        for load in [&ordered, &unique, &gapless] {
            load.wait_for(200);
        }
        cluster.postgres.kill().unwrap();
        cluster.postgres.restart().unwrap();
    }
    for load in [&ordered, &unique, &gapless] {
        load.wait_for(200);
    }
    let (ordered, unique, gapless) = (ordered.end(), unique.end(), gapless.end());
    assert_eq!(ordered.check(ORDERED), []);
    assert_eq!(unique.check(UNIQUE), []);
    let gaps = Gaps::AtMost { start: 1, skipped_max: 0 };
    assert_eq!(
        gapless.check(Rules { is_ordered: true, gaps }),
        [],
        "every commit of unknown outcome was looked up, none burned"
    );
    assert!((0..3).all(|key| cluster.is_gapless(&key.to_string())));
}

#[test]
fn a_node_without_postgres_issues_its_held_ranges_and_reports_not_ready() {
    let mut cluster = Cluster::start();
    let url = cluster.postgres.url();
    // Another node creates the schema first, since that could exceed the short timeout.
    Server::node(&url).stop();
    let short_timeout = [("BATES_STORE_TIMEOUT_MS", "300")];
    let node = Server::try_node(&url, &[], &short_timeout).unwrap();
    let mut client = Client::connect(node.port).unwrap();
    assert_eq!(node.redis_cli(&["LPOP", "id-pool:P:1"]), "P-1-1001");
    assert_eq!(ready(&node), 200);
    cluster.postgres.stop().unwrap();
    while ready(&node) == 200 {}
    assert_eq!(ready(&node), 503, "not ready before its range runs out");
    for number in 1002..=1032 {
        assert_eq!(node.redis_cli(&["LPOP", "id-pool:P:1"]), format!("P-1-{number}"), "from memory");
    }
    let refused = node.redis_cli(&["LPOP", "id-pool:P:1"]);
    assert!(refused.contains("store_unavailable"), "{refused}");
    assert!(
        client.incr_raw("counter:a").unwrap().starts_with("-ERR store_unavailable"),
        "an ordered number needs a commit"
    );
    cluster.postgres.restart().unwrap();
    assert_eq!(
        node.redis_cli(&["LPOP", "id-pool:P:1"]),
        "P-1-1033",
        "the node recovers by itself, and burned no number"
    );
    assert_eq!(client.incr("counter:a"), Some(1));
    while ready(&node) != 200 {}
}

/// The status of `/readyz`, which the node updates once a second.
fn ready(node: &Server) -> u16 {
    exchange(node.http, b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").0
}

/// Node A is suspended with a range in memory, and B moves the cursor on. When A resumes and stops, it must not move
/// the cursor back.
#[test]
fn a_node_that_resumes_late_does_not_move_the_cursor_back() {
    let cluster = Cluster::start();
    let (suspended, other) = (cluster.node(), cluster.node());
    assert_eq!(suspended.redis_cli(&["INCR", "ticket:a"]), "1");
    suspended.signal("STOP");
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "33");
    let stderr = other.stop();
    assert!(
        stderr.contains("31 unused numbers given back"),
        "the cursor stands at 34, not where A left it: {stderr}"
    );
    let third = cluster.node();
    assert_eq!(third.redis_cli(&["INCR", "ticket:a"]), "34");
    suspended.signal("CONT");
    let stderr = suspended.stop();
    assert!(stderr.contains("0 unused numbers given back, 31 gaps left"), "{stderr}");
    assert_eq!(cluster.query("SELECT next FROM bates.cursor"), "66", "no cursor falls");
    third.kill();
    assert_eq!(cluster.node().redis_cli(&["INCR", "ticket:a"]), "66");
}

/// A node may be suspended while it holds locks: PostgreSQL ends its transaction, and the node notices when it resumes.
#[test]
fn a_suspended_node_does_not_block_other_nodes_forever() {
    let cluster = Cluster::start();
    let (suspended, other) = (cluster.node(), cluster.node());
    let history = History::default();
    let keys = [keys("counter", 2), keys("invoice", 2)].concat();
    let at_suspended = Switching::begin_in(&history, 8, &keys, &[&suspended]);
    let at_other = Switching::begin_in(&history, 8, &keys, &[&other]);
    for _ in 0..5 {
        at_suspended.wait_for(50);
        suspended.signal("STOP");
        at_other.wait_for(200);
        suspended.signal("CONT");
    }
    at_suspended.wait_for(50);
    at_other.end();
    at_suspended.end();
    let gaps = Gaps::AtMost { start: 1, skipped_max: 0 };
    assert_eq!(history.check(Rules { is_ordered: true, gaps }), []);
}

#[test]
fn ten_nodes_start_at_once_on_an_empty_database() {
    let cluster = Cluster::start();
    let url = cluster.postgres.url();
    let refused = Server::try_node(&url, &[], &[]).err().unwrap();
    assert!(refused.contains("holds no Bates store") && refused.contains("--new"), "{refused}");
    let nodes: Vec<Server> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..10).map(|_| scope.spawn(|| Server::node(&url))).collect();
        starting.into_iter().map(|node| node.join().unwrap()).collect()
    });
    let numbers = nodes.iter().map(|node| node.redis_cli(&["INCR", "counter:a"]));
    assert!(numbers.eq((1..=10).map(|number| number.to_string())));
    assert_eq!(cluster.query("SELECT count(*) FROM bates.node"), "10");
    assert!(Server::try_node(&url, &[], &[]).is_ok(), "an existing store needs no --new");
}

#[test]
fn creating_changing_or_retiring_a_series_on_one_node_reaches_the_others() {
    let cluster = Cluster::start();
    let (one, two) = (cluster.node(), cluster.node());
    let unknown = two.redis_cli(&["INCR", "tenant:a"]);
    assert!(unknown.contains("bad_key"), "{unknown}");
    let tenant = r#"{"pattern":"{seq}","promise":"ordered","key":"tenant:{name}"}"#;
    assert_eq!(ask(one.http, "PUT", "/v1/series/tenant", tenant).0, 201);
    assert_eq!(two.redis_cli(&["INCR", "tenant:a"]), "1", "the other node finds it by its key");
    let by_name = r#"{"pattern":"{seq}"}"#;
    assert_eq!(ask(two.http, "PUT", "/v1/series/other", by_name).0, 201);
    assert_eq!(ask(one.http, "POST", "/v1/series/other/next", "").0, 200, "and by its name");
    assert_eq!(ask(two.http, "PUT", "/v1/series/tenant", tenant).0, 200, "it already exists");
    let changed = ask(two.http, "PATCH", "/v1/series/tenant", r#"{"limits":{"scopes_max":1}}"#);
    assert_eq!(changed.0, 200, "{changed:?}");
    while ask(one.http, "GET", "/v1/series/tenant", "").1["limits"]["scopes_max"] != 1 {}
    assert!(one.redis_cli(&["INCR", "tenant:b"]).contains("too_many_scopes"));
    assert_eq!(ask(two.http, "DELETE", "/v1/series/tenant", "").0, 200);
    while ask(one.http, "GET", "/v1/series/tenant", "").0 != 404 {}
    assert!(one.redis_cli(&["INCR", "tenant:a"]).contains("bad_key"));
}

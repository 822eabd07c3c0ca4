//! Several nodes on one PostgreSQL: what holds across them, whichever of them is killed, stopped or cut off.

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
fn nodes_share_cursors_and_a_clean_stop_gives_back() {
    let cluster = Cluster::start();
    let (one, two) = (cluster.node(), cluster.node());
    for turn in 0..10 {
        assert_eq!(one.redis_cli(&["INCR", "counter:a"]), (2 * turn + 1).to_string());
        assert_eq!(two.redis_cli(&["INCR", "counter:a"]), (2 * turn + 2).to_string(), "ordered across nodes");
    }
    assert_eq!(one.redis_cli(&["INCR", "ticket:a"]), "1");
    assert_eq!(two.redis_cli(&["INCR", "ticket:a"]), "33", "each node has leases of its own");
    let said = two.stop();
    assert!(said.contains("31 unused numbers given back, 0 gaps left"), "{said}");
    let said = one.stop();
    assert!(said.contains("0 unused numbers given back, 31 gaps left"), "somebody was granted since: {said}");
    assert_eq!(cluster.node().redis_cli(&["INCR", "ticket:a"]), "34");
    let held = cluster.query("SELECT first || '-' || last FROM bates.held_range ORDER BY first");
    assert_eq!(held, "34-65", "what was handed out or let go is not held");
    let lost = cluster.query("SELECT first || '-' || last || ' ' || reason FROM bates.lost");
    assert_eq!(lost, "2-32 lease_lost", "what could not go back is explained");
}

/// Clients go from node to node while one of the three is killed again and again.
#[test]
fn three_nodes_of_which_one_is_killed_again_and_again_repeat_nothing_and_keep_their_order() {
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
    // A client that waits for a node that is killed never hears of its number; nothing else is missing.
    let gaps = Gaps::AtMost { start: 1, skipped_max: 6 * KILLS as u64 };
    assert_eq!(gapless.check(Rules { is_ordered: true, gaps }), []);
    assert!((0..3).all(|key| cluster.is_gapless(&key.to_string())), "the ledger knows each of them");
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

/// The nodes outlive their database, and go on by themselves when it is back.
#[test]
fn a_postgres_that_is_killed_under_load_comes_back_and_repeats_nothing() {
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
    assert_eq!(gapless.check(Rules { is_ordered: true, gaps }), [], "each commit was looked up, none burned");
    assert!((0..3).all(|key| cluster.is_gapless(&key.to_string())));
}

#[test]
fn a_node_without_its_postgres_goes_on_with_what_it_holds_and_says_that_it_is_not_ready() {
    let mut cluster = Cluster::start();
    let url = cluster.postgres.url();
    // The schema is made by another one: that takes its time.
    Server::node(&url).stop();
    let impatient = [("BATES_STORE_TIMEOUT_MS", "300")];
    let node = Server::try_node(&url, &[], &impatient).unwrap();
    let mut client = Client::connect(node.port).unwrap();
    assert_eq!(node.redis_cli(&["LPOP", "id-pool:P:1"]), "P-1-1001");
    assert_eq!(ready(&node), 200);
    cluster.postgres.stop().unwrap();
    while ready(&node) == 200 {}
    assert_eq!(ready(&node), 503, "before it runs out");
    for number in 1002..=1032 {
        assert_eq!(node.redis_cli(&["LPOP", "id-pool:P:1"]), format!("P-1-{number}"), "it is in memory");
    }
    let refused = node.redis_cli(&["LPOP", "id-pool:P:1"]);
    assert!(refused.contains("store_unavailable"), "{refused}");
    assert!(
        client.incr_raw("counter:a").unwrap().starts_with("-ERR store_unavailable"),
        "no order without commits"
    );
    cluster.postgres.restart().unwrap();
    assert_eq!(node.redis_cli(&["LPOP", "id-pool:P:1"]), "P-1-1033", "by itself, and nothing was burned");
    assert_eq!(client.incr("counter:a"), Some(1));
    while ready(&node) != 200 {}
}

/// The status of readiness, which is found out once a second.
fn ready(node: &Server) -> u16 {
    exchange(node.http, b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").0
}

/// Node A sleeps with a lease in memory; B moves on; A wakes and stops, and must not move the cursor back.
#[test]
fn a_zombie_does_not_give_back_what_others_have_passed() {
    let cluster = Cluster::start();
    let (zombie, other) = (cluster.node(), cluster.node());
    assert_eq!(zombie.redis_cli(&["INCR", "ticket:a"]), "1");
    zombie.signal("STOP");
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "33");
    let said = other.stop();
    assert!(
        said.contains("31 unused numbers given back"),
        "the cursor stands at 34, not where A left it: {said}"
    );
    let third = cluster.node();
    assert_eq!(third.redis_cli(&["INCR", "ticket:a"]), "34");
    zombie.signal("CONT");
    let said = zombie.stop();
    assert!(said.contains("0 unused numbers given back, 31 gaps left"), "{said}");
    assert_eq!(cluster.query("SELECT next FROM bates.cursor"), "66", "no cursor falls");
    third.kill();
    assert_eq!(cluster.node().redis_cli(&["INCR", "ticket:a"]), "66");
}

/// A node may be stopped while it holds locks: PostgreSQL ends its transaction, and it finds that out when it wakes.
#[test]
fn a_node_that_is_stopped_in_the_middle_of_its_work_holds_nobody_up_for_ever() {
    let cluster = Cluster::start();
    let (zombie, other) = (cluster.node(), cluster.node());
    let history = History::default();
    let keys = [keys("counter", 2), keys("invoice", 2)].concat();
    let at_zombie = Switching::begin_in(&history, 8, &keys, &[&zombie]);
    let at_other = Switching::begin_in(&history, 8, &keys, &[&other]);
    for _ in 0..5 {
        at_zombie.wait_for(50);
        zombie.signal("STOP");
        at_other.wait_for(200);
        zombie.signal("CONT");
    }
    at_zombie.wait_for(50);
    at_other.end();
    at_zombie.end();
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
    assert!(Server::try_node(&url, &[], &[]).is_ok(), "once it is there, nobody has to ask for it");
}

#[test]
fn a_series_that_is_made_changed_or_retired_on_one_node_is_so_on_all() {
    let cluster = Cluster::start();
    let (one, two) = (cluster.node(), cluster.node());
    let unknown = two.redis_cli(&["INCR", "tenant:a"]);
    assert!(unknown.contains("bad_key"), "{unknown}");
    let tenant = r#"{"pattern":"{seq}","promise":"ordered","key":"tenant:{name}"}"#;
    assert_eq!(ask(one.http, "PUT", "/v1/series/tenant", tenant).0, 201);
    assert_eq!(two.redis_cli(&["INCR", "tenant:a"]), "1", "the first call finds it, by its key");
    let by_name = r#"{"pattern":"{seq}"}"#;
    assert_eq!(ask(two.http, "PUT", "/v1/series/other", by_name).0, 201);
    assert_eq!(ask(one.http, "POST", "/v1/series/other/next", "").0, 200, "and by its name");
    assert_eq!(ask(two.http, "PUT", "/v1/series/tenant", tenant).0, 200, "it is there already");
    let changed = ask(two.http, "PATCH", "/v1/series/tenant", r#"{"limits":{"scopes_max":1}}"#);
    assert_eq!(changed.0, 200, "{changed:?}");
    while ask(one.http, "GET", "/v1/series/tenant", "").1["limits"]["scopes_max"] != 1 {}
    assert!(one.redis_cli(&["INCR", "tenant:b"]).contains("too_many_scopes"));
    assert_eq!(ask(two.http, "DELETE", "/v1/series/tenant", "").0, 200);
    while ask(one.http, "GET", "/v1/series/tenant", "").0 != 404 {}
    assert!(one.redis_cli(&["INCR", "tenant:a"]).contains("bad_key"));
}

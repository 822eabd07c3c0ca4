//! Floors and adoptions beside nodes that run, are suspended or were killed, and beside clients that hold leases.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::cluster::Cluster;
use super::http::ask;
use super::running::{Client, Server};

const CONFIGURATION: &str = r#"
series:
  ticket: { pattern: "{seq}", promise: unique, key: "ticket:{name}" }
  other: { pattern: "{seq}", promise: unique, key: "other:{name}" }
  coupon: { pattern: "{seq:base62:6}", order: shuffled, key: "coupon", limits: { lease_min: 64 } }
"#;

fn cluster() -> Cluster {
    Cluster::start_with(CONFIGURATION)
}

fn floor(cluster: &Cluster, position: &str, flags: &[&str]) -> (bool, String) {
    cluster.bates(&[&["floor", "ticket", "name=a", position], flags].concat())
}

#[test]
fn a_refused_floor_names_the_suspended_node_and_changes_nothing() {
    let cluster = cluster();
    let (suspended, other) = (cluster.node(), cluster.node());
    assert_eq!(suspended.redis_cli(&["INCR", "ticket:a"]), "1");
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "33");
    suspended.signal("STOP");
    let (is_done, output) = floor(&cluster, "1000", &["--wait", "3"]);
    assert!(!is_done, "{output}");
    let expected = [
        &format!("process {}", suspended.pid()),
        "name=a [1, 33)",
        "--accept-risk",
        "Nothing else was changed",
    ];
    assert!(expected.iter().all(|text| output.contains(text)), "{output}");
    assert!(!output.contains(&format!("process {}", other.pid())), "the running node has answered: {output}");
    assert_eq!(cluster.query("SELECT next FROM bates.cursor"), "65");
    suspended.signal("CONT");
    let (is_done, output) = floor(&cluster, "1000", &["--wait", "60"]);
    assert!(is_done, "{output}");
    for node in [&suspended, &other] {
        let number: u64 = node.redis_cli(&["INCR", "ticket:a"]).parse().unwrap();
        assert!(number >= 1000, "{number}");
    }
}

#[test]
fn an_accepted_risk_is_reported_and_makes_the_range_of_the_node_uncertain() {
    let cluster = cluster();
    let (suspended, other) = (cluster.node(), cluster.node());
    assert_eq!(suspended.redis_cli(&["INCR", "ticket:a"]), "1");
    suspended.signal("STOP");
    let (is_done, output) = floor(&cluster, "1000", &["--wait", "1", "--accept-risk"]);
    assert!(is_done, "{output}");
    assert!(
        output.contains("may be issued twice") && output.contains(&format!("process {}", suspended.pid())),
        "{output}"
    );
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "1000");
    assert_eq!(
        cluster.query("SELECT first, last, reason FROM bates.lost ORDER BY first"),
        "1|32|crash_skip\n33|999|floor_raised"
    );
    suspended.signal("CONT");
}

#[test]
fn a_node_killed_on_this_machine_does_not_block_a_floor() {
    let cluster = cluster();
    let (killed, other) = (cluster.node(), cluster.node());
    assert_eq!(killed.redis_cli(&["INCR", "ticket:a"]), "1");
    killed.kill();
    let (is_done, output) = floor(&cluster, "1000", &["--wait", "0"]);
    assert!(is_done, "{output}");
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "1000");
}

#[test]
fn a_node_that_was_suspended_issues_no_adopted_number() {
    let cluster = cluster();
    let (suspended, other) = (cluster.node(), cluster.node());
    let mut seen: BTreeSet<String> = BTreeSet::from([suspended.redis_cli(&["LPOP", "coupon"])]);
    let key = cluster.query("SELECT encode(permutation_key, 'hex') FROM bates.series WHERE name = 'coupon'");
    let render = ["pattern", "render", "{seq:base62:6}", "--order", "shuffled", "--key", &key];
    let (_, held) = cluster.bates(&[&render[..], &["--position", "1", "--count", "60"]].concat());
    let adopted: BTreeSet<&str> = held.lines().step_by(2).collect();
    let file = cluster.file("earlier.txt", &adopted.iter().copied().collect::<Vec<_>>().join("\n"));
    let adopt = |flags: &[&str]| cluster.bates(&[&["adopt", "--series", "coupon", &file], flags].concat());
    suspended.signal("STOP");
    let (is_done, output) = adopt(&["--wait", "1"]);
    assert!(!is_done && output.contains(&format!("process {}", suspended.pid())), "{output}");
    assert_eq!(cluster.query("SELECT count(*) FROM bates.adopted"), "0", "no position is adopted");
    suspended.signal("CONT");
    let (is_done, output) = adopt(&["--wait", "60"]);
    assert!(is_done, "{output}");
    for node in [&suspended, &other] {
        for line in node.redis_cli(&["LPOP", "coupon", "200"]).lines() {
            assert!(!adopted.contains(line), "{line} was adopted");
            assert!(seen.insert(line.to_owned()), "{line} came twice");
        }
    }
}

#[test]
fn once_a_floor_command_returns_no_node_issues_a_lower_number() {
    let cluster = cluster();
    let nodes: Vec<Server> = (0..3).map(|_| cluster.node()).collect();
    let (raised, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for node in &nodes {
            let (raised, is_over) = (&raised, &is_over);
            scope.spawn(move || {
                let (mut client, load) = (Client::connect(node.port).unwrap(), LoadGuard(is_over));
                while load.is_running() {
                    let floor = raised.load(Ordering::SeqCst);
                    let number = client.incr("ticket:a").unwrap();
                    assert!(number >= floor, "{number} after the floor was raised to {floor}");
                }
            });
        }
        let (mut position, _guard) = (0, LoadGuard(&is_over));
        for _ in 0..4 {
            position += 1_000_000;
            let (is_done, output) = floor(&cluster, &position.to_string(), &["--wait", "60"]);
            assert!(is_done, "{output}");
            raised.store(position, Ordering::SeqCst);
        }
    });
}

/// Ends the load when dropped, even by a failed assertion: the other threads would never end.
struct LoadGuard<'a>(&'a AtomicBool);

impl LoadGuard<'_> {
    fn is_running(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Positions that a node gives up in a recall must not be counted as issued.
#[test]
fn floors_leave_every_position_of_every_series_accounted_for() {
    let cluster = cluster();
    let nodes: Vec<Server> = (0..2).map(|_| cluster.node()).collect();
    let is_over = AtomicBool::new(false);
    let mut answered = [BTreeSet::new(), BTreeSet::new()];
    thread::scope(|scope| {
        let load = |node: &Server, key: &'static str| {
            let (port, is_over) = (node.port, &is_over);
            scope.spawn(move || {
                let (mut client, mut numbers, load) =
                    (Client::connect(port).unwrap(), vec![], LoadGuard(is_over));
                while load.is_running() {
                    numbers.push(client.incr(key).unwrap());
                }
                numbers
            })
        };
        let loads: Vec<_> =
            nodes.iter().flat_map(|node| [(0, load(node, "ticket:a")), (1, load(node, "other:a"))]).collect();
        let guard = LoadGuard(&is_over);
        for turn in 1..=4 {
            let (is_done, output) = floor(&cluster, &(turn * 100_000).to_string(), &["--wait", "60"]);
            assert!(is_done, "{output}");
        }
        drop(guard);
        for (series, load) in loads {
            for number in load.join().unwrap() {
                assert!(answered[series].insert(number), "{number} came twice");
            }
        }
    });
    for node in nodes {
        node.stop();
    }
    for (series, answered) in [("ticket", &answered[0]), ("other", &answered[1])] {
        let condition = format!("WHERE series = '{series}' AND scope = 'name=a'");
        let next: u64 = cluster.query(&format!("SELECT next FROM bates.cursor {condition}")).parse().unwrap();
        assert_eq!(
            cluster.query(&format!("SELECT count(*) FROM bates.held_range {condition}")),
            "0",
            "all nodes have stopped"
        );
        let lost = cluster.query(&format!("SELECT first, last FROM bates.lost {condition}"));
        let lost: Vec<(u64, u64)> = lost
            .lines()
            .map(|line| {
                line.split_once('|').map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()))
            })
            .collect::<Option<_>>()
            .unwrap();
        let is_lost = |at: u64| lost.iter().any(|(first, last)| (*first..=*last).contains(&at));
        // Every position between two answers is recorded as lost, and no answered position is.
        let mut expected = 1;
        for number in answered.iter().copied().chain([next]) {
            let unexplained = (expected..number).filter(|at| !is_lost(*at)).count();
            assert_eq!(unexplained, 0, "of {series} from {expected} to {number}; lost: {lost:?}");
            assert!(
                number == next || !is_lost(number),
                "{number} of {series} was answered, but is recorded as lost"
            );
            expected = number + 1;
        }
    }
}

#[test]
fn a_floor_above_a_client_lease_is_refused_and_names_the_lease() {
    let cluster = cluster();
    let node = cluster.node();
    let (status, lease) =
        ask(node.http, "POST", "/v1/series/ticket/lease", r#"{"scope":{"name":"a"},"count":100}"#);
    assert_eq!(status, 200, "{lease}");
    let id = lease["lease"].as_str().unwrap();
    let (is_done, output) = floor(&cluster, "1000", &["--wait", "60"]);
    assert!(!is_done && output.contains(id) && output.contains("Nothing else was changed"), "{output}");
    let (is_done, output) = cluster.bates(&["floor", "ticket", "name=b", "1000"]);
    assert!(is_done, "the client holds no number of that scope: {output}");
    let (is_done, output) = floor(&cluster, "1000", &["--wait", "60", "--accept-risk"]);
    assert!(is_done && output.contains(id) && output.contains("may be issued twice"), "{output}");
    let path = format!("/v1/leases/{id}/return");
    assert_eq!(ask(node.http, "POST", &path, r#"{"unused":[]}"#).0, 200);
    let (is_done, output) = floor(&cluster, "2000", &["--wait", "60"]);
    assert!(is_done, "{output}");
}

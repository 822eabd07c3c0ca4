//! Floors and adoptions beside nodes that run, stand still or were killed, and beside clients that hold numbers.

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

fn floor(cluster: &Cluster, position: &str, more: &[&str]) -> (bool, String) {
    cluster.bates(&[&["floor", "ticket", "name=a", position], more].concat())
}

#[test]
fn a_floor_beside_a_node_that_stands_still_is_refused_names_it_and_changes_nothing() {
    let cluster = cluster();
    let (still, other) = (cluster.node(), cluster.node());
    assert_eq!(still.redis_cli(&["INCR", "ticket:a"]), "1");
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "33");
    still.signal("STOP");
    let (is_done, said) = floor(&cluster, "1000", &["--wait", "3"]);
    assert!(!is_done, "{said}");
    let expected =
        [&format!("process {}", still.pid()), "name=a [1, 33)", "--accept-risk", "Nothing else was changed"];
    assert!(expected.iter().all(|word| said.contains(word)), "{said}");
    assert!(!said.contains(&format!("process {}", other.pid())), "the other has answered: {said}");
    assert_eq!(cluster.query("SELECT next FROM bates.cursor"), "65");
    still.signal("CONT");
    let (is_done, said) = floor(&cluster, "1000", &["--wait", "60"]);
    assert!(is_done, "{said}");
    for node in [&still, &other] {
        let number: u64 = node.redis_cli(&["INCR", "ticket:a"]).parse().unwrap();
        assert!(number >= 1000, "{number}");
    }
}

#[test]
fn a_risk_that_is_accepted_is_told_and_what_the_node_held_is_uncertain() {
    let cluster = cluster();
    let (still, other) = (cluster.node(), cluster.node());
    assert_eq!(still.redis_cli(&["INCR", "ticket:a"]), "1");
    still.signal("STOP");
    let (is_done, said) = floor(&cluster, "1000", &["--wait", "1", "--accept-risk"]);
    assert!(is_done, "{said}");
    assert!(
        said.contains("may be issued twice") && said.contains(&format!("process {}", still.pid())),
        "{said}"
    );
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "1000");
    assert_eq!(
        cluster.query("SELECT first, last, reason FROM bates.lost ORDER BY first"),
        "1|32|crash_skip\n33|999|floor_raised"
    );
    still.signal("CONT");
}

#[test]
fn a_node_that_was_killed_on_this_machine_holds_up_no_floor() {
    let cluster = cluster();
    let (killed, other) = (cluster.node(), cluster.node());
    assert_eq!(killed.redis_cli(&["INCR", "ticket:a"]), "1");
    killed.kill();
    let (is_done, said) = floor(&cluster, "1000", &["--wait", "0"]);
    assert!(is_done, "{said}");
    assert_eq!(other.redis_cli(&["INCR", "ticket:a"]), "1000");
}

#[test]
fn numbers_that_were_adopted_do_not_come_from_a_node_that_stood_still() {
    let cluster = cluster();
    let (still, other) = (cluster.node(), cluster.node());
    let mut seen: BTreeSet<String> = BTreeSet::from([still.redis_cli(&["LPOP", "coupon"])]);
    let key = cluster.query("SELECT encode(permutation_key, 'hex') FROM bates.series WHERE name = 'coupon'");
    let render = ["pattern", "render", "{seq:base62:6}", "--order", "shuffled", "--key", &key];
    let (_, held) = cluster.bates(&[&render[..], &["--position", "1", "--count", "60"]].concat());
    let adopted: BTreeSet<&str> = held.lines().step_by(2).collect();
    let file = cluster.file("earlier.txt", &adopted.iter().copied().collect::<Vec<_>>().join("\n"));
    let adopt = |more: &[&str]| cluster.bates(&[&["adopt", "--series", "coupon", &file], more].concat());
    still.signal("STOP");
    let (is_done, said) = adopt(&["--wait", "1"]);
    assert!(!is_done && said.contains(&format!("process {}", still.pid())), "{said}");
    assert_eq!(cluster.query("SELECT count(*) FROM bates.adopted"), "0", "nothing is adopted");
    still.signal("CONT");
    let (is_done, said) = adopt(&["--wait", "60"]);
    assert!(is_done, "{said}");
    for node in [&still, &other] {
        for line in node.redis_cli(&["LPOP", "coupon", "200"]).lines() {
            assert!(!adopted.contains(line), "{line} was adopted");
            assert!(seen.insert(line.to_owned()), "{line} came twice");
        }
    }
}

#[test]
fn what_is_asked_for_once_a_floor_has_answered_lies_above_it_on_every_node() {
    let cluster = cluster();
    let nodes: Vec<Server> = (0..3).map(|_| cluster.node()).collect();
    let (answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for node in &nodes {
            let (answered, is_over) = (&answered, &is_over);
            scope.spawn(move || {
                let (mut client, load) = (Client::connect(node.port).unwrap(), Load(is_over));
                while load.goes_on() {
                    let floor = answered.load(Ordering::SeqCst);
                    let number = client.incr("ticket:a").unwrap();
                    assert!(number >= floor, "{number} after the floor of {floor} had answered");
                }
            });
        }
        let (mut position, _load) = (0, Load(&is_over));
        for _ in 0..4 {
            position += 1_000_000;
            let (is_done, said) = floor(&cluster, &position.to_string(), &["--wait", "60"]);
            assert!(is_done, "{said}");
            answered.store(position, Ordering::SeqCst);
        }
    });
}

/// Ends the load also where a claim fails: the others would never end.
struct Load<'a>(&'a AtomicBool);

impl Load<'_> {
    fn goes_on(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Positions that a node gave up were counted as handed out.
#[test]
fn floors_leave_every_position_of_this_series_and_of_others_accounted_for() {
    let cluster = cluster();
    let nodes: Vec<Server> = (0..2).map(|_| cluster.node()).collect();
    let is_over = AtomicBool::new(false);
    let mut answered = [BTreeSet::new(), BTreeSet::new()];
    thread::scope(|scope| {
        let load = |node: &Server, key: &'static str| {
            let (port, is_over) = (node.port, &is_over);
            scope.spawn(move || {
                let (mut client, mut numbers, load) = (Client::connect(port).unwrap(), vec![], Load(is_over));
                while load.goes_on() {
                    numbers.push(client.incr(key).unwrap());
                }
                numbers
            })
        };
        let loads: Vec<_> =
            nodes.iter().flat_map(|node| [(0, load(node, "ticket:a")), (1, load(node, "other:a"))]).collect();
        let ending = Load(&is_over);
        for turn in 1..=4 {
            let (is_done, said) = floor(&cluster, &(turn * 100_000).to_string(), &["--wait", "60"]);
            assert!(is_done, "{said}");
        }
        drop(ending);
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
        let of = format!("WHERE series = '{series}' AND scope = 'name=a'");
        let next: u64 = cluster.query(&format!("SELECT next FROM bates.cursor {of}")).parse().unwrap();
        assert_eq!(
            cluster.query(&format!("SELECT count(*) FROM bates.held_range {of}")),
            "0",
            "all have stopped"
        );
        let lost = cluster.query(&format!("SELECT first, last FROM bates.lost {of}"));
        let lost: Vec<(u64, u64)> = lost
            .lines()
            .map(|line| {
                line.split_once('|').map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()))
            })
            .collect::<Option<_>>()
            .unwrap();
        let is_lost = |at: u64| lost.iter().any(|(first, last)| (*first..=*last).contains(&at));
        // Between two answers that follow each other every position is lost, and no answer is.
        let mut expected = 1;
        for number in answered.iter().copied().chain([next]) {
            let unexplained = (expected..number).filter(|at| !is_lost(*at)).count();
            assert_eq!(unexplained, 0, "of {series} from {expected} to {number}; lost: {lost:?}");
            assert!(number == next || !is_lost(number), "{number} of {series} was answered, and is lost");
            expected = number + 1;
        }
    }
}

#[test]
fn numbers_below_a_floor_that_a_client_holds_are_named_and_the_floor_refused() {
    let cluster = cluster();
    let node = cluster.node();
    let (status, lease) =
        ask(node.http, "POST", "/v1/series/ticket/lease", r#"{"scope":{"name":"a"},"count":100}"#);
    assert_eq!(status, 200, "{lease}");
    let id = lease["lease"].as_str().unwrap();
    let (is_done, said) = floor(&cluster, "1000", &["--wait", "60"]);
    assert!(!is_done && said.contains(id) && said.contains("Nothing else was changed"), "{said}");
    let (is_done, said) = cluster.bates(&["floor", "ticket", "name=b", "1000"]);
    assert!(is_done, "it holds nothing of that scope: {said}");
    let (is_done, said) = floor(&cluster, "1000", &["--wait", "60", "--accept-risk"]);
    assert!(is_done && said.contains(id) && said.contains("may be issued twice"), "{said}");
    let back = format!("/v1/leases/{id}/return");
    assert_eq!(ask(node.http, "POST", &back, r#"{"unused":[]}"#).0, 200);
    let (is_done, said) = floor(&cluster, "2000", &["--wait", "60"]);
    assert!(is_done, "{said}");
}

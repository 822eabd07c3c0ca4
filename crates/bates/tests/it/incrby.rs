//! `INCRBY` beside `INCR` and reservations, on server processes: the caller owns the whole run of numbers that ends
//! with the answer, and no other caller gets a number of it.

use std::thread;

use bates_testkit::history::{Client as Log, Gaps, History, Rules, Scope};

use super::cluster::Cluster;
use super::documents::{Home, post};
use super::running::{Client, Server};

const SERIES: &str = r#"
  ticket: { pattern: "{seq}", promise: unique, key: "ticket:{name}" }
  counter: { pattern: "{seq}", promise: ordered, key: "counter:{name}" }
  invoice: { pattern: "{seq}", promise: gapless, key: "invoice:{name}" }
"#;

/// The requests of a client in turn: 0 is a reservation, 1 an `INCR`, and more an `INCRBY` of that many.
const COUNTS: [u64; 9] = [1, 100, 0, 1, 7, 1, 40, 0, 1];

fn reserve(port: u16, series: &str, name: &str) -> u64 {
    let body = format!(r#"{{"scope":{{"name":"{name}"}}}}"#);
    let (status, reserved) = post(port, &format!("/v1/series/{series}/reservations"), &body);
    assert_eq!(status, 201, "{reserved}");
    reserved["id"].as_str().unwrap().parse().unwrap()
}

#[test]
fn incrby_never_includes_a_reserved_number() {
    for home in [Home::folder(), Home::postgres()] {
        let server = home.start(SERIES);
        assert_eq!(server.redis_cli(&["INCR", "ticket:a"]), "1");
        assert_eq!(reserve(server.http, "ticket", "a"), 33);
        assert_eq!(server.redis_cli(&["INCRBY", "ticket:a", "100"]), "133", "34 to 133");
        assert_eq!(
            server.redis_cli(&["INCRBY", "ticket:a", "31"]),
            "32",
            "the rest of the range in memory is a run too"
        );
    }
}

/// Takes numbers, runs and reservations of one scope, from one node after the other.
fn run_client(log: &mut Log, scope: Scope, (series, name): (&str, &str), nodes: &[&Server], rounds: usize) {
    let mut clients: Vec<Client> = nodes.iter().map(|node| Client::connect(node.port).unwrap()).collect();
    let key = format!("{series}:{name}");
    for round in 0..rounds {
        let node = (round + round / 5) % nodes.len();
        let request = log.ask(scope);
        let (first, last) = match COUNTS[round % COUNTS.len()] {
            0 => {
                let number = reserve(nodes[node].http, series, name);
                (number, number)
            }
            1 => {
                let number = clients[node].incr(&key).unwrap();
                (number, number)
            }
            count => {
                let answer = clients[node].send(&["INCRBY", &key, &count.to_string()]).unwrap();
                let last: u64 =
                    answer.strip_prefix(':').unwrap_or_else(|| panic!("{answer}")).parse().unwrap();
                (last + 1 - count, last)
            }
        };
        log.answered(request, first, last);
    }
}

/// Runs clients on all nodes, and returns the history of their answers.
fn run_clients(series: &'static str, nodes: &[&Server], clients: usize, rounds: usize) -> History {
    let history = History::default();
    thread::scope(|threads| {
        for client in 0..clients {
            let mut log = history.client();
            let name = ["a", "b"][client % 2];
            let scope = history.scope(name);
            threads.spawn(move || run_client(&mut log, scope, (series, name), nodes, rounds));
        }
    });
    history
}

fn check(series: &str, history: &History) {
    let is_ordered = series != "ticket";
    let gaps = if series == "invoice" { Gaps::AtMost { start: 1, skipped_max: 0 } } else { Gaps::Any };
    assert_eq!(history.check(Rules { is_ordered, gaps }), [], "{series}");
}

#[test]
fn runs_on_one_server_share_no_number() {
    let home = Home::folder();
    let server = home.start(SERIES);
    for series in ["ticket", "counter", "invoice"] {
        check(series, &run_clients(series, &[&server], 6, 200));
    }
}

#[test]
fn runs_on_three_nodes_share_no_number() {
    let cluster = Cluster::start();
    let nodes: Vec<Server> = (0..3).map(|_| cluster.node()).collect();
    let nodes: Vec<&Server> = nodes.iter().collect();
    for series in ["ticket", "counter", "invoice"] {
        check(series, &run_clients(series, &nodes, 8, 250));
    }
}

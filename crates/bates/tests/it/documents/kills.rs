//! Servers killed under load: every accepted document is delivered, each request keeps one number forever, and a
//! gapless series has no gap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::super::http::ask;
use super::{Home, post, send};

const WRITERS: u64 = 50;
const EACH: u64 = 12;
const KILLS: u64 = 4;

/// Repeats a request with a key until the server answers twice, and checks that both answers have the same number.
fn assign_with_retries(port: &AtomicU16, key: &str, body: &str) -> String {
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let path = "/v1/series/invoice/documents";
        let (status, answer) = send(port.load(Ordering::SeqCst), path, "application/json", Some(key), body);
        if let (200 | 202, Ok(answer)) = (status, serde_json::from_str::<Value>(&answer)) {
            answers.push(answer["id"].as_str().unwrap().to_owned());
        } else {
            assert!([0, 503].contains(&status), "{status} {answer}");
            thread::yield_now();
        }
    }
    assert_eq!(answers[0], answers[1], "the same request has the same number");
    answers.remove(0)
}

fn check_kills_under_load_lose_nothing(mut home: Home) {
    let series =
        format!("  invoice: {{ pattern: \"I-{{seq}}\", promise: gapless, sink: {} }}\n", home.sink());
    let mut server = Some(home.start(&series));
    let (port, done) = (AtomicU16::new(server.as_ref().unwrap().http), AtomicU64::new(0));
    let numbers: BTreeMap<String, String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (port, done) = (&port, &done);
                scope.spawn(move || {
                    let each = (0..EACH).map(|at| {
                        let key = format!("{writer}-{at}");
                        let body = json!({"document": {"key": key}}).to_string();
                        let number = assign_with_retries(port, &key, &body);
                        done.fetch_add(1, Ordering::SeqCst);
                        (key, number)
                    });
                    each.collect::<Vec<_>>()
                })
            })
            .collect();
        for kill in 1..=KILLS {
            while done.load(Ordering::SeqCst) < kill * WRITERS * EACH / (KILLS + 1) {
                thread::yield_now();
            }
            server.take().unwrap().kill();
            if let Some(postgres) = &mut home.postgres
                && kill == 2
            {
                postgres.kill().unwrap();
                postgres.restart().unwrap();
            }
            let fresh = home.start(&series);
            port.store(fresh.http, Ordering::SeqCst);
            server = Some(fresh);
        }
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let server = server.unwrap();
    let distinct: BTreeSet<&String> = numbers.values().collect();
    assert_eq!(distinct.len() as u64, WRITERS * EACH, "a number came twice");
    while ask(server.http, "GET", "/v1/outbox?state=pending", "").1["documents"] != json!([]) {}
    let mut delivered = home.delivered();
    delivered.dedup();
    let mut expected: Vec<String> = (1..=WRITERS * EACH).map(|at| format!("I-{at}")).collect();
    expected.sort();
    assert_eq!(delivered, expected, "every accepted document, without a gap");
    let reconciled = post(server.http, "/v1/reconcile", "").1;
    assert_eq!((&reconciled["gaps"], &reconciled["uncertain"]), (&json!(0), &json!(0)), "{reconciled}");
}

#[test]
fn documents_on_the_embedded_store_survive_kills() {
    check_kills_under_load_lose_nothing(Home::folder());
}

#[test]
fn documents_on_postgres_survive_kills_of_nodes_and_of_postgres() {
    check_kills_under_load_lose_nothing(Home::postgres());
}

#[test]
fn the_range_of_a_killed_server_is_uncertain_and_not_missing() {
    let home = Home::folder();
    let series = "  ticket: { pattern: \"{seq}\", key: t }\n";
    let server = home.start(series);
    assert_eq!(server.redis_cli(&["INCRBY", "t", "10"]), "10");
    server.kill();
    let server = home.start(series);
    let reconciled = post(server.http, "/v1/reconcile", "").1;
    assert_eq!((&reconciled["missing"], &reconciled["uncertain"]), (&json!(0), &json!(32)), "{reconciled}");
    assert_eq!(server.redis_cli(&["INCR", "t"]), "33");
    let gaps = ask(server.http, "GET", "/v1/gaps", "").1;
    assert_eq!(
        (&gaps["gaps"][0]["reason"], &gaps["gaps"][0]["uncertain"]),
        (&json!("crash_skip"), &json!(true))
    );
    server.stop();
    let server = home.start(series);
    post(server.http, "/v1/reconcile", "");
    let gaps = ask(server.http, "GET", "/v1/gaps", "").1;
    assert_eq!(gaps["gaps"].as_array().unwrap().len(), 1, "a clean stop adds no gap: {gaps}");
}

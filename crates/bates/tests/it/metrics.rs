//! `/metrics` of a server process: the values that alerts use.

use std::collections::BTreeMap;

use serde_json::json;

use super::documents::{Home, send};
use super::http::{ask, exchange};
use super::running::Server;

const DOCUMENT: &str = "application/json";

/// The samples of a server, by name with labels.
pub(crate) fn samples(server: &Server) -> BTreeMap<String, String> {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (status, head, body) = exchange(server.http, request);
    assert_eq!(status, 200, "{head}");
    let text = String::from_utf8(body).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn remaining(server: &Server, series: &str) -> Option<u64> {
    let value = samples(server).remove(&format!("bates_remaining{{series=\"{series}\"}}"))?;
    Some(value.parse().unwrap())
}

#[test]
fn bates_remaining_reports_the_fullest_scope() {
    let home = Home::folder();
    let server =
        home.start("  tiny: { pattern: \"{p}-{seq:4}\", limits: { lease_min: 10, lease_max: 10 } }\n");
    assert_eq!(remaining(&server, "tiny"), None, "no range was granted yet");
    assert_eq!(samples(&server)["bates_capacity{series=\"tiny\"}"], "9999");
    let next = |scope: &str, count: u64| {
        ask(server.http, "POST", &format!("/v1/series/tiny/next?p={scope}&count={count}"), "")
    };
    next("a", 1);
    assert_eq!(remaining(&server, "tiny"), Some(9_989), "the range of ten is granted, so none of it remains");
    next("b", 5);
    assert_eq!(remaining(&server, "tiny"), Some(9_989), "the other scope has as many left");
    assert_eq!(next("b", 9_999).1["ids"].as_array().unwrap().len(), 9_994);
    assert_eq!(remaining(&server, "tiny"), Some(0));
    assert_eq!(next("b", 1).1["code"], "exhausted");
    assert_eq!(remaining(&server, "tiny"), Some(0));
    assert_eq!(next("a", 1).0, 200, "other scopes go on");
}

#[test]
fn bates_remaining_counts_allowed_numbers_of_the_current_period() {
    let home = Home::folder();
    let server = home.start(
        "  few: { pattern: \"{seq:4}\", order: shuffled, restrict: [\"0\", \"1\", \"2\", \"3\", \"4\"], limits: { lease_min: 1, lease_max: 1 } }\n  \
           daily: { pattern: \"{date:%Y%m%d}-{seq:2}\", reset: daily, promise: gapless }\n  \
           endless: { pattern: \"{seq}\" }\n",
    );
    ask(server.http, "POST", "/v1/series/few/next", "");
    let left = remaining(&server, "few").unwrap();
    assert!(
        (500..625).contains(&left),
        "625 numbers of four digits have none of the restricted ones: {left}"
    );
    ask(server.http, "POST", "/v1/series/daily/next?date=2020-02-02&count=90", "");
    assert_eq!(remaining(&server, "daily"), None, "numbers of another day do not count");
    ask(server.http, "POST", "/v1/series/daily/next?count=9", "");
    assert_eq!(remaining(&server, "daily"), Some(90));
    ask(server.http, "POST", "/v1/series/endless/next", "");
    assert!(
        remaining(&server, "endless").unwrap() > 9_000_000_000_000_000,
        "every series ends at position 2^53"
    );
}

#[test]
fn documents_lower_bates_remaining_and_released_ranges_raise_it() {
    let home = Home::folder();
    let sink = home.sink();
    let server = home.start(&format!("  filed: {{ pattern: \"F-{{seq:3}}\", sink: {sink} }}\n"));
    let (status, answer) =
        send(server.http, "/v1/series/filed/documents", DOCUMENT, None, r#"{"document":1}"#);
    assert_eq!(status, 202, "{answer}");
    assert_eq!(remaining(&server, "filed"), Some(998));
    let description = r#"{"pattern":"R-{seq:5}"}"#;
    assert_eq!(ask(server.http, "PUT", "/v1/series/retired", description).0, 201);
    ask(server.http, "POST", "/v1/series/retired/next", "");
    assert_eq!(remaining(&server, "retired"), Some(99_967));
    ask(server.http, "DELETE", "/v1/series/retired", "");
    assert_eq!(remaining(&server, "retired"), None);
    assert_eq!(
        ask(server.http, "PUT", "/v1/series/retired", description),
        (201, ask(server.http, "GET", "/v1/series/retired", "").1)
    );
    assert_eq!(remaining(&server, "retired"), Some(99_998), "its range was released");
}

#[test]
fn bates_store_up_reports_an_outage_and_its_end() {
    let mut home = Home::postgres();
    let server = home.start("  one: { pattern: \"{seq}\" }\n");
    let is_up = || samples(&server)["bates_store_up"] == "1";
    assert!(is_up());
    let postgres = home.postgres.as_mut().unwrap();
    postgres.stop().unwrap();
    // The server caches the result of a store check for a second, so this ends within two.
    while is_up() {
        std::thread::yield_now();
    }
    assert_eq!(
        ask(server.http, "GET", "/v1/series/one", "").1["name"],
        json!("one"),
        "the server itself still answers"
    );
    postgres.restart().unwrap();
    while !is_up() {
        std::thread::yield_now();
    }
}

//! `/metrics` of a server process: what alerts are made of.

use std::collections::BTreeMap;

use serde_json::json;

use super::documents::{Home, send};
use super::http::{ask, exchange};
use super::running::Server;

const DOCUMENT: &str = "application/json";

/// The samples of a server, by name and labels as they are written.
pub(crate) fn samples(server: &Server) -> BTreeMap<String, String> {
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
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
fn what_remains_is_what_the_fullest_scope_has_left() {
    let home = Home::folder();
    let server =
        home.start("  tiny: { pattern: \"{p}-{seq:4}\", limits: { lease_min: 10, lease_max: 10 } }\n");
    assert_eq!(remaining(&server, "tiny"), None, "nothing was granted yet");
    assert_eq!(samples(&server)["bates_capacity{series=\"tiny\"}"], "9999");
    let next = |scope: &str, count: u64| {
        ask(server.http, "POST", &format!("/v1/series/tiny/next?p={scope}&count={count}"), "")
    };
    next("a", 1);
    assert_eq!(remaining(&server, "tiny"), Some(9_989), "ten are granted, and not left");
    next("b", 5);
    assert_eq!(remaining(&server, "tiny"), Some(9_989), "another scope has as much");
    assert_eq!(next("b", 9_999).1["ids"].as_array().unwrap().len(), 9_994);
    assert_eq!(remaining(&server, "tiny"), Some(0));
    assert_eq!(next("b", 1).1["code"], "exhausted");
    assert_eq!(remaining(&server, "tiny"), Some(0));
    assert_eq!(next("a", 1).0, 200, "the others go on");
}

#[test]
fn what_remains_is_counted_in_numbers_and_in_the_period_that_it_is() {
    let home = Home::folder();
    let server = home.start(
        "  few: { pattern: \"{seq:4}\", order: shuffled, restrict: [\"0\", \"1\", \"2\", \"3\", \"4\"], limits: { lease_min: 1, lease_max: 1 } }\n  \
           daily: { pattern: \"{date:%Y%m%d}-{seq:2}\", reset: daily, promise: gapless }\n  \
           endless: { pattern: \"{seq}\" }\n",
    );
    ask(server.http, "POST", "/v1/series/few/next", "");
    let left = remaining(&server, "few").unwrap();
    assert!((500..625).contains(&left), "of 10,000 texts of four digits 625 have none of these: {left}");
    ask(server.http, "POST", "/v1/series/daily/next?date=2020-02-02&count=90", "");
    assert_eq!(remaining(&server, "daily"), None, "another day says nothing of today");
    ask(server.http, "POST", "/v1/series/daily/next?count=9", "");
    assert_eq!(remaining(&server, "daily"), Some(90));
    ask(server.http, "POST", "/v1/series/endless/next", "");
    assert!(
        remaining(&server, "endless").unwrap() > 9_000_000_000_000_000,
        "2^53 positions are where every series ends"
    );
}

#[test]
fn documents_count_too_and_what_is_given_back_remains() {
    let home = Home::folder();
    let sink = home.sink();
    let server = home.start(&format!("  filed: {{ pattern: \"F-{{seq:3}}\", sink: {sink} }}\n"));
    let (status, said) = send(server.http, "/v1/series/filed/documents", DOCUMENT, None, r#"{"document":1}"#);
    assert_eq!(status, 202, "{said}");
    assert_eq!(remaining(&server, "filed"), Some(998));
    let described = r#"{"pattern":"R-{seq:5}"}"#;
    assert_eq!(ask(server.http, "PUT", "/v1/series/retired", described).0, 201);
    ask(server.http, "POST", "/v1/series/retired/next", "");
    assert_eq!(remaining(&server, "retired"), Some(99_967));
    ask(server.http, "DELETE", "/v1/series/retired", "");
    assert_eq!(remaining(&server, "retired"), None);
    assert_eq!(
        ask(server.http, "PUT", "/v1/series/retired", described),
        (201, ask(server.http, "GET", "/v1/series/retired", "").1)
    );
    assert_eq!(remaining(&server, "retired"), Some(99_998), "its lease was given back");
}

#[test]
fn a_store_that_is_away_is_told_and_so_is_its_return() {
    let mut home = Home::postgres();
    let server = home.start("  one: { pattern: \"{seq}\" }\n");
    let is_up = || samples(&server)["bates_store_up"] == "1";
    assert!(is_up());
    let postgres = home.postgres.as_mut().unwrap();
    postgres.stop().unwrap();
    // A look is good for a second, so it is told within two.
    while is_up() {
        std::thread::yield_now();
    }
    assert_eq!(
        ask(server.http, "GET", "/v1/series/one", "").1["name"],
        json!("one"),
        "the rest is told all the same"
    );
    postgres.restart().unwrap();
    while !is_up() {
        std::thread::yield_now();
    }
}

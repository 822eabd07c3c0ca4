//! Every channel through which numbers leave a server, each recorded under the name of the caller.

use serde_json::json;

use super::super::documents::Home;
use super::super::pools::Redis;
use super::super::running::{Client, Server};
use super::{TOKENS, ask_as, ask_with, entries, summaries};

fn client(server: &Server, words: &[&str]) -> Client {
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.send(words).unwrap(), "+OK", "{words:?}");
    client
}

fn numbers_are_recorded_under_the_names_of_tokens(home: &Home) {
    let series = "  n: { pattern: \"N-{seq}\", key: \"n\", audit: true }\n  c: { pattern: \"{seq}\", key: \"c:{k}\", promise: ordered, audit: { retention_hours: 9600 } }\n  plain: { pattern: \"{seq}\", key: \"p:{k}\" }\n";
    let server = home.start_with(series, &TOKENS);
    let port = server.http;
    assert_eq!(ask_as(port, "one", "POST /v1/series/n/next?count=1000", "").0, 200);
    let lines = ask_with(port, "two", "Accept: text/plain\r\n", "POST /v1/series/n/next?count=5000", "");
    assert!(lines.0 == 200 && lines.1.contains("N-6000"), "{}", lines.1.len());
    // The recorded address is that of the socket; forwarding headers are ignored.
    let forged = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n";
    let (_, one) = ask_with(port, "shared", forged, "POST /v1/series/n/next", "");
    assert_eq!(one, r#"{"ids":["N-6001"]}"#);
    for wrong in ["three", "registry", ""] {
        assert_eq!(ask_as(port, wrong, "POST /v1/series/n/next", "").0, 401, "{wrong}");
        assert_eq!(ask_as(port, wrong, "GET /v1/audit", "").0, 401, "{wrong}");
    }
    let mut registry = client(&server, &["AUTH", "registry", "one"]);
    assert_eq!(registry.send(&["LPOP", "n"]).unwrap(), "$6");
    assert_eq!(registry.line().unwrap(), "N-6002");
    assert_eq!(registry.incr("c:a"), Some(1));
    assert_eq!(registry.send(&["INCRBY", "c:a", "10"]).unwrap(), ":11");
    let mut clinic = client(&server, &["AUTH", "two"]);
    assert_eq!(clinic.send(&["BATES.NEXT", "n", "COUNT", "2"]).unwrap(), "*2");
    let lines: Vec<String> = (0..4).map(|_| clinic.line().unwrap()).collect();
    assert_eq!(lines, ["$6", "N-6003", "$6", "N-6004"]);
    assert_eq!(clinic.incr("p:a"), Some(1));
    let mut shared = client(&server, &["AUTH", "default", "shared"]);
    assert_eq!(shared.incr("c:a"), Some(12));
    let hello = Client::connect(server.port).unwrap().send(&["HELLO", "3", "AUTH", "registry", "one"]);
    assert_eq!(hello.unwrap(), "%7");
    for wrong in [["AUTH", "clinic", "one"], ["AUTH", "registry", "shared"], ["AUTH", "", "shared"]] {
        let answer = Client::connect(server.port).unwrap().send(&wrong).unwrap();
        assert!(answer.starts_with("-WRONGPASS"), "{wrong:?}: {answer}");
    }
    let found = summaries(&entries(port, ""));
    let parts = found.iter().filter(|entry| entry.starts_with("clinic http")).count();
    assert!((1..=2).contains(&parts), "each part of a streamed answer is recorded by itself: {found:?}");
    let found: Vec<&String> = found.iter().filter(|entry| !entry.starts_with("clinic http")).collect();
    assert_eq!(
        found,
        [
            "registry http N-1..N-1000 1000",
            "127.0.0.1 http N-6001..N-6001 1",
            "registry resp N-6002..N-6002 1",
            "registry resp 1..1 1",
            "registry resp 2..11 10",
            "clinic resp N-6003..N-6004 2",
            "127.0.0.1 resp 12..12 1",
        ]
    );
    assert!(server.stop().contains("stopped"));
}

#[test]
fn numbers_are_recorded_under_the_names_of_tokens_on_the_embedded_store() {
    numbers_are_recorded_under_the_names_of_tokens(&Home::folder());
}

#[test]
fn numbers_are_recorded_under_the_names_of_tokens_on_postgres() {
    numbers_are_recorded_under_the_names_of_tokens(&Home::postgres());
}

#[test]
fn documents_and_reservations_are_recorded_once_and_each_token_has_its_own_idempotency_keys() {
    for home in [Home::folder(), Home::postgres()] {
        let series = format!(
            "  i: {{ pattern: \"I-{{seq}}\", promise: gapless, audit: true, sink: {} }}\n",
            home.sink()
        );
        let server = home.start_with(&series, &TOKENS);
        let send = |secret: &str, key: &str| {
            let (path, key) = ("POST /v1/series/i/documents", format!("Idempotency-Key: {key}\r\n"));
            let (status, body) = ask_with(server.http, secret, &key, path, r#"{"document":{"a":1}}"#);
            let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
            (status, answer["id"].as_str().unwrap().to_owned())
        };
        assert_eq!(send("one", "k"), (202, "I-1".to_owned()));
        assert_eq!(send("one", "k"), (200, "I-1".to_owned()), "the same request");
        assert_eq!(send("two", "k"), (202, "I-2".to_owned()), "another caller");
        assert_eq!(send("shared", "k"), (202, "I-3".to_owned()), "callers without a token share one name");
        let (status, reserved) = ask_as(server.http, "two", "POST /v1/series/i/reservations", "");
        assert_eq!((status, &reserved["id"]), (201, &json!("I-4")));
        let lines = "{\"document\":1}\n{\"document\":2}\n";
        let kind = "Content-Type: application/x-ndjson\r\n";
        assert_eq!(ask_with(server.http, "one", kind, "POST /v1/series/i/documents", lines).0, 200);
        let mut found = summaries(&entries(server.http, "&series=i"));
        found.sort();
        assert_eq!(
            found,
            [
                "127.0.0.1 document I-3..I-3 1",
                "clinic document I-2..I-2 1",
                "clinic reservation I-4..I-4 1",
                "registry document I-1..I-1 1",
                "registry document I-5..I-5 1",
                "registry document I-6..I-6 1",
            ]
        );
    }
}

#[test]
fn the_audit_names_the_pool_for_pushed_numbers_and_the_caller_for_numbers_taken_past_it() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let series = super::super::pools::series(&redis.url(), "size: 100, refill_at: 30%", "{ p: A }");
        let series = series.replace("  ticket: { ", "  ticket: { audit: true, ");
        let server = home.start_with(&series, &TOKENS);
        redis.wait_for_level("pool:A", 100);
        let popped: Vec<String> = redis.command(&["LPOP", "pool:A", "100"]);
        let path = "POST /v1/series/ticket/pool/next";
        let (status, own) = ask_as(server.http, "two", path, r#"{"scope":{"p":"A"},"count":3}"#);
        assert_eq!((status, own["values"].as_array().unwrap().len()), (200, 3));
        for number in &popped {
            let found = summaries(&entries(server.http, &format!("&id={number}")));
            assert!(found.len() == 1 && found[0].starts_with("pool pool:A pool A-1..A-100 100"), "{found:?}");
        }
        let number = own["values"][1].as_str().unwrap();
        let found = summaries(&entries(server.http, &format!("&id={number}")));
        assert!(found.len() == 1 && found[0].starts_with("clinic http "), "{found:?}");
        let pool_entries = summaries(&entries(server.http, "&who=pool%20pool%3AA"));
        assert!(
            !pool_entries.is_empty()
                && pool_entries.iter().all(|entry| entry.starts_with("pool pool:A pool "))
        );
    }
}

#[test]
fn numbers_issued_through_the_openg2p_api_are_recorded() {
    let home = Home::folder();
    let series =
        "  farmer: { pattern: \"{seq:9}{check:verhoeff}\", order: shuffled, reject: openg2p, audit: true }\n";
    for (open, secret, caller) in
        [("false", "one", "registry"), ("true", "two", "clinic"), ("true", "", "127.0.0.1")]
    {
        let mut environment = TOKENS.to_vec();
        environment.push(("BATES_OPENG2P_WITHOUT_SECRET", open));
        let server = home.start_with(series, &environment);
        for (path, count) in
            [("POST /v1/idgenerator/farmer/id", 1), ("POST /v1/idgenerator/farmer/ids?count=50", 50)]
        {
            let (status, answer) = ask_as(server.http, secret, path, "");
            assert_eq!(status, 200, "{answer}");
            let ids = &answer["response"]["ids"];
            let id = if count == 1 { &answer["response"]["id"] } else { &ids[49] };
            let found = entries(server.http, &format!("&id={}", id.as_str().unwrap()));
            assert_eq!(
                (found.len(), &found[0]["who"], &found[0]["how"]),
                (1, &json!(caller), &json!("http")),
                "{id}"
            );
            assert_eq!(found[0]["count"], json!(count));
        }
    }
}

//! HTTP of a server process as a client sees it, with good and with bad input.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::running::Server;

/// Sends the bytes of one request, and reads the answer to its end. Status 0 means that the server did not answer.
pub(crate) fn exchange(port: u16, request: &[u8]) -> (u16, String, Vec<u8>) {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Default::default() };
    // The server may close before it has read everything; its answer is read all the same.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_lowercase(), answer.get(end + 4..).unwrap_or_default().to_vec())
}

/// Sends a request with additional header lines; returns the status, the head in lower case, and the body.
pub(crate) fn send(port: u16, request: &str, heads: &str, body: &str) -> (u16, String, String) {
    let length = body.len();
    let (status, head, body) = exchange(
        port,
        format!(
            "{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n{heads}\r\n{body}"
        )
        .as_bytes(),
    );
    (status, head, String::from_utf8(body).unwrap())
}

/// Sends a request; returns the status and the JSON body.
pub(crate) fn ask(port: u16, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, head, body) = exchange(port, request.as_bytes());
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    assert!(head.contains(kind), "{method} {path}: {head}");
    (status, serde_json::from_slice(&body).unwrap())
}

/// Sends a request that must be refused; returns the status and the error code.
fn code(port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
    let (status, answer) = ask(port, method, path, body);
    assert_eq!(answer["status"], status, "{answer}");
    assert_eq!(answer["may_burn"], false, "nothing that a client sends may burn a number: {answer}");
    (status, answer["code"].as_str().unwrap().to_owned())
}

fn start() -> (tempfile::TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    (data, server)
}

#[test]
fn body_and_query_address_the_same_scope_as_a_redis_key() {
    let (_data, server) = start();
    let port = server.http;
    let next = "/v1/series/document/next";
    let body = r#"{"scope":{"project":"PROJ","type":"9012"},"count":2}"#;
    assert_eq!(ask(port, "POST", next, body), (200, json!({"ids": ["PROJ-9012-1001", "PROJ-9012-1002"]})));
    let query = format!("{next}?type=9012&project=PROJ");
    assert_eq!(ask(port, "POST", &query, ""), (200, json!({"ids": ["PROJ-9012-1003"]})));
    assert_eq!(server.redis_cli(&["LPOP", "id-pool:PROJ:9012"]), "PROJ-9012-1004");
    let (_, peek) = ask(port, "GET", "/v1/series/document/peek?project=PROJ&type=9012", "");
    assert_eq!((&peek["last"], &peek["next"], &peek["exists"]), (&json!(1004), &json!(1005), &json!(true)));
    let (_, never) = ask(port, "GET", "/v1/series/document/peek?project=NO&type=1", "");
    assert_eq!(
        (&never["last"], &never["next"], &never["exists"]),
        (&json!(null), &json!(1001), &json!(false))
    );
    let (_, scopes) = ask(port, "GET", "/v1/series/document/scopes", "");
    assert_eq!(
        scopes,
        json!({"scopes": [{"scope": {"project": "PROJ", "type": "9012"}, "cursor": 1033}]}),
        "a peek creates no scope"
    );
    let (_, trace) = ask(port, "GET", "/v1/ids/PROJ-9012-1002", "");
    let found = json!({"series": "document", "scope": {"project": "PROJ", "type": "9012"}, "position": 1002, "granted": true});
    assert_eq!(trace["matches"], json!([found]));
    let (_, verdict) = ask(port, "GET", "/v1/series/farmer/validate/123", "");
    assert_eq!((&verdict["valid"], &verdict["reasons"][0]["code"]), (&json!(false), &json!("length")));
}

#[test]
fn a_stream_has_up_to_a_million_distinct_lines() {
    let (_data, server) = start();
    let request = |count: u64| {
        format!(
            "POST /v1/series/short/next?count={count} HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\nConnection: close\r\n\r\n"
        )
    };
    let (status, head, body) = exchange(server.http, request(1_000_000).as_bytes());
    assert!(status == 200 && head.contains("text/plain") && head.contains("chunked"), "{head}");
    let text = decode_chunks(&body);
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1_000_000);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 1_000_000, "no key twice");
    let (status, head, _) = exchange(server.http, request(1_000_001).as_bytes());
    assert!(status == 422 && head.contains("application/problem+json"), "{head}");
}

fn decode_chunks(mut body: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        text.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn series_can_be_created_changed_retired_and_recreated_across_restarts() {
    let (data, server) = start();
    let port = server.http;
    let tenant = "/v1/series/invoice-acme";
    let description = r#"{"pattern":"ACME-{seq:4}","promise":"ordered","key":"acme"}"#;
    let (status, created) = ask(port, "PUT", tenant, description);
    assert_eq!((status, &created["origin"], &created["capacity"]), (201, &json!("api"), &json!(9_999)));
    assert_eq!(ask(port, "PUT", tenant, description).0, 200, "the same description again");
    assert_eq!(
        code(port, "PUT", tenant, r#"{"pattern":"OTHER-{seq:4}"}"#),
        (409, "series_exists".to_owned())
    );
    assert_eq!(
        code(port, "PUT", "/v1/series/document", r#"{"pattern":"{seq}"}"#),
        (409, "series_in_file".to_owned())
    );
    assert_eq!(code(port, "DELETE", "/v1/series/document", ""), (409, "series_in_file".to_owned()));
    assert_eq!(
        code(port, "PUT", "/v1/series/other", r#"{"pattern":"{seq}","key":"acme"}"#),
        (409, "keys_meet".to_owned())
    );
    assert_eq!(server.redis_cli(&["LPOP", "acme", "2"]), "ACME-0001\nACME-0002");
    let (status, amended) = ask(port, "PATCH", tenant, r#"{"restrict":["0003"],"limits":{"lease_max":64}}"#);
    assert_eq!((status, &amended["limits"]["lease_max"]), (200, &json!(64)));
    assert_eq!(code(port, "PATCH", tenant, r#"{"pattern":"{seq}"}"#), (422, "bad_body".to_owned()));
    assert_eq!(server.redis_cli(&["LPOP", "acme"]), "ACME-0004", "0003 is skipped");
    server.kill();
    let server = Server::start(data.path());
    let port = server.http;
    assert_eq!(
        ask(port, "GET", tenant, "").1["restrict"],
        json!(["0003"]),
        "a series created at run time survives the kill"
    );
    assert_eq!(ask(port, "DELETE", tenant, "").0, 200);
    assert_eq!(code(port, "GET", tenant, ""), (404, "unknown_series".to_owned()));
    assert!(server.redis_cli(&["LPOP", "acme"]).contains("no series has a key"));
    assert_eq!(
        code(port, "PUT", tenant, r#"{"pattern":"OTHER-{seq:4}"}"#),
        (409, "series_pinned".to_owned())
    );
    server.kill();
    let server = Server::start(data.path());
    assert_eq!(code(server.http, "GET", tenant, ""), (404, "unknown_series".to_owned()), "it stays retired");
    assert_eq!(ask(server.http, "PUT", tenant, description).0, 201);
    assert_eq!(
        server.redis_cli(&["LPOP", "acme"]),
        "ACME-0035",
        "it continues at its cursor, above the range that the kill lost"
    );
}

#[test]
fn bad_input_gets_a_clear_error_and_changes_nothing() {
    let (_data, server) = start();
    let port = server.http;
    let next = "/v1/series/counter/next";
    for count in ["0", "-1", "1.5", "\"10\"", "null", "1000000000", "99999999999999999999"] {
        let (status, code) =
            code(port, "POST", next, &format!(r#"{{"scope":{{"name":"a"}},"count":{count}}}"#));
        assert!(status == 422 && ["bad_body", "bad_count"].contains(&&*code), "{count}: {status} {code}");
    }
    for count in ["0", "-1", "1.5", "", "x", "100001", "1000000000"] {
        assert_eq!(
            code(port, "POST", &format!("{next}?name=a&count={count}"), ""),
            (422, "bad_count".to_owned()),
            "{count}"
        );
    }
    let deep = format!(r#"{{"scope":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for (body, expected) in [
        (&*deep, (400, "bad_request")),
        ("{", (400, "bad_request")),
        ("[]", (422, "bad_body")),
        (r#"{"scope":{"name":"a"},"nonsense":1}"#, (422, "bad_body")),
        (r#"{"scope":{"name":7.5}}"#, (422, "bad_body")),
        (r#"{"scope":{"name":"a"},"date":"31.12.2026"}"#, (422, "bad_body")),
        (r#"{"scope":{}}"#, (422, "bad_scope")),
        (r#"{"scope":{"name":"a","more":"b"}}"#, (422, "bad_scope")),
        (r#"{"scope":{"name":"a","name":"b"}}"#, (422, "bad_scope")),
        (r#"{"scope":{"name":"\u0000"}}"#, (422, "bad_body")),
        (r#"{"scope":{"name":"a\r"}}"#, (422, "bad_scope")),
        (r#"{"scope":{"name":"a\u202eb"}}"#, (422, "bad_scope")),
        (&format!(r#"{{"scope":{{"name":"{}"}}}}"#, "x".repeat(3_000)), (422, "bad_scope")),
    ] {
        let shown: String = body.chars().take(60).collect();
        assert_eq!(code(port, "POST", next, body), (expected.0, expected.1.to_owned()), "{shown}");
    }
    for value in ["../", "*", "%00", "a%0d", "%e2%80%ae", &"x".repeat(65)] {
        let path = format!("/v1/series/document/next?project={value}&type=1");
        assert_eq!(code(port, "POST", &path, ""), (422, "bad_scope".to_owned()), "{value}");
    }
    for (name, expected) in [
        ("missing", (404, "unknown_series")),
        ("A", (422, "bad_name")),
        ("%00", (422, "bad_name")),
        ("a%0d", (422, "bad_name")),
        ("%ff", (422, "bad_name")),
        ("%e2%80%ae", (422, "bad_name")),
        (&*"x".repeat(65), (422, "bad_name")),
    ] {
        let path = format!("/v1/series/{name}/next");
        assert_eq!(code(port, "POST", &path, ""), (expected.0, expected.1.to_owned()), "{name}");
    }
    assert_eq!(code(port, "POST", next, &" ".repeat(70_000)), (413, "too_large".to_owned()));
    assert_eq!(code(port, "GET", next, ""), (405, "method_not_allowed".to_owned()));
    assert_eq!(code(port, "GET", "/nowhere", ""), (404, "not_found".to_owned()));
    assert_eq!(code(port, "GET", "/v1/ids/nothing%20like%20it", ""), (404, "unknown_id".to_owned()));
    assert_eq!(
        ask(port, "GET", "/v1/series/counter/scopes", "").1,
        json!({"scopes": []}),
        "no scope was created"
    );
    assert_eq!(
        ask(port, "GET", "/v1/series/document/scopes", "").1,
        json!({"scopes": []}),
        "no scope was created"
    );
}

#[test]
fn requests_that_are_not_utf8_or_not_http_are_refused() {
    let (_data, server) = start();
    let body = b"{\"scope\":{\"name\":\"\xff\"}}";
    let head = format!(
        "POST /v1/series/counter/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (status, _, answer) = exchange(server.http, &[head.as_bytes(), body].concat());
    assert_eq!(status, 422, "{}", String::from_utf8_lossy(&answer));
    assert_eq!(exchange(server.http, b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n").0, 400);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    assert!([414, 431].contains(&exchange(server.http, long.as_bytes()).0));
    // A chunked body does not announce its length.
    let endless = format!(
        "POST /v1/series/counter/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n{}\r\n0\r\n\r\n",
        " ".repeat(70_000)
    );
    assert_eq!(exchange(server.http, endless.as_bytes()).0, 413);
    let broken = b"POST /v1/series/counter/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n";
    assert_eq!(exchange(server.http, broken).0, 400);
    assert_eq!(code(server.http, "POST", "/v1/series/counter/next?name=a&count=1&count=3", "").0, 422);
}

#[test]
fn a_refused_series_names_the_column_or_field_at_fault() {
    let (_data, server) = start();
    for (body, detail) in [
        (r#"{"pattern":"{seq:99999}"}"#, "column 6"),
        (r#"{"pattern":"{unknown:x}-{seq}"}"#, "column"),
        (r#"{"pattern":"{seq"}"#, "column 5"),
        (r#"{"pattern":"seq}"}"#, "column 4"),
        (r#"{"pattern":"{seq}","promise":"maybe","order":"random"}"#, "promise: \"maybe\""),
        (r#"{"pattern":"{seq}","time_zone":"Mars/Olympus"}"#, "no time zone"),
        (r#"{"pattern":"{date:%m}-{seq}","reset":"yearly"}"#, "reset"),
        (r#"{"pattern":"{seq:2}","start":100}"#, "start 100"),
        (r#"{"pattern":"{seq}","limits":{"lease_min":0}}"#, "lease_min"),
        (r#"{"pattern":"{seq}","reject":"nonsense"}"#, "reject"),
        (r#"{"pattern":"{seq}","key":"a b"}"#, "key"),
    ] {
        let (status, answer) = ask(server.http, "PUT", "/v1/series/tenant", body);
        assert_eq!((status, &answer["code"]), (422, &json!("bad_series")), "{body}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{body}: {answer}");
    }
    assert_eq!(code(server.http, "GET", "/v1/series/tenant", "").0, 404);
}

#[test]
fn a_secret_guards_http_and_pages_of_other_sites_get_no_number() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", "open sesame")]);
    let get = |path: &str, header: &str| {
        exchange(
            server.http,
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}Connection: close\r\n\r\n").as_bytes(),
        )
    };
    for header in [
        "",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic b3BlbiBzZXNhbWU=\r\n",
        "Authorization: open sesame\r\n",
    ] {
        let (status, head, body) = get("/v1/series", header);
        assert!(status == 401 && head.contains("www-authenticate: bearer"), "{header} {head}");
        assert!(!String::from_utf8_lossy(&body).contains("sesame"));
    }
    for path in ["/v1/series", "/metrics"] {
        assert_eq!(get(path, "").0, 401, "{path}");
        assert_eq!(get(path, "Authorization: Bearer open sesame\r\n").0, 200, "{path}");
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs/"] {
        assert_eq!(get(path, "").0, 200, "{path} reveals nothing about numbers");
    }
    drop(server);
    let server = Server::start(data.path());
    let post = |origin: &str| {
        exchange(server.http, format!("POST /v1/series/short/next HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n{origin}\r\n").as_bytes()).0
    };
    assert_eq!(post("Origin: https://evil.example\r\n"), 403);
    assert_eq!(post("Origin: null\r\n"), 403);
    assert_eq!(post("Origin: http://127.0.0.1:1\r\n"), 200, "the server's own page");
    let rebound = b"POST /v1/series/short/next HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(server.http, rebound).0, 403, "an attacker's host name that resolves to this server");
    assert_eq!(post(""), 200, "a program sends no origin");
}

#[test]
fn every_described_path_exists_and_the_committed_openapi_file_is_current() {
    let (_data, server) = start();
    let (status, document) = ask(server.http, "GET", "/openapi.json", "");
    assert_eq!(status, 200);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("BATES_TEST_BLESS").is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&document).unwrap() + "\n").unwrap();
    }
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(document, committed, "docs/openapi.json is outdated; BATES_TEST_BLESS=1 rewrites it");
    let mut paths = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.replace("{series}", "short").replace("{id}", "x");
            let request = format!(
                "{} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                method.to_uppercase()
            );
            let (status, _, body) = exchange(server.http, request.as_bytes());
            let body = String::from_utf8_lossy(&body).into_owned();
            assert!(status != 405 && !body.contains("\"not_found\""), "{method} {path}: {status} {body}");
            paths += 1;
        }
    }
    assert!(paths >= 13, "{paths}");
    let (status, head, body) =
        exchange(server.http, b"GET /docs/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(status == 200 && head.contains("text/html"), "{head}");
    let page = String::from_utf8(body).unwrap();
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "the page loads nothing from other servers: {page}"
    );
}

#[test]
fn metrics_count_by_series_and_never_by_scope() {
    let (_data, server) = start();
    for scope in 0..50 {
        ask(
            server.http,
            "POST",
            "/v1/series/counter/next",
            &format!(r#"{{"scope":{{"name":"s{scope}"}},"count":3}}"#),
        );
    }
    server.redis_cli(&["INCR", "counter:s1"]);
    ask(server.http, "POST", "/v1/series/farmer/next?count=7", "");
    let (_, head, body) =
        exchange(server.http, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let text = String::from_utf8(body).unwrap();
    for line in [
        "bates_issued_total{series=\"counter\"} 151",
        "bates_issued_total{series=\"farmer\"} 7",
        "bates_issued_total{series=\"short\"} 0",
        "bates_waits_total{series=\"counter\"} 50",
        "bates_refills_total{series=\"counter\"} 50",
        "bates_refill_errors_total{series=\"counter\"} 0",
        "bates_level{series=\"counter\"} 1449",
        "bates_scopes_in_memory{series=\"counter\"} 50",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("s1\""), "no label names a scope");
}

#[test]
fn a_client_past_the_scope_limit_gets_429_and_fills_neither_disk_nor_memory() {
    let (_data, server) = start();
    let description = r#"{"pattern":"{seq}","key":"c:{name}","limits":{"scopes_max":3}}"#;
    assert_eq!(ask(server.http, "PUT", "/v1/series/careless", description).0, 201);
    for scope in 0..200 {
        let (status, answer) =
            ask(server.http, "POST", &format!("/v1/series/careless/next?name=s{scope}"), "");
        let expected = if scope < 3 { (200, &json!(null)) } else { (429, &json!("too_many_scopes")) };
        assert_eq!((status, &answer["code"]), expected, "{answer}");
    }
    assert!(server.redis_cli(&["INCR", "c:new"]).contains("too_many_scopes"));
    assert_eq!(server.redis_cli(&["INCR", "c:s0"]), "2", "existing scopes go on");
    let (_, _, metrics) =
        exchange(server.http, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains("bates_scopes_in_memory{series=\"careless\"} 3\n"), "{metrics}");
    assert_eq!(
        ask(server.http, "GET", "/v1/series/careless/scopes", "").1["scopes"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn redis_clients_of_a_series_with_value_seq_get_numbers_without_the_prefix() {
    let (_data, server) = start();
    let description = r#"{"pattern":"{project}-{seq:4}","start":1001,"key":"bare:{project}","value":"seq"}"#;
    assert_eq!(ask(server.http, "PUT", "/v1/series/bare", description).0, 201);
    assert_eq!(server.redis_cli(&["LPOP", "bare:P", "2"]), "1001\n1002");
    assert_eq!(server.redis_cli(&["LPOP", "bare:P"]), "1003");
    let (_, whole) = ask(server.http, "POST", "/v1/series/bare/next?project=P", "");
    assert_eq!(whole, json!({"ids": ["P-1004"]}), "HTTP answers the whole identifier");
    let daily =
        r#"{"pattern":"{date:%Y%m%d}/{seq}","reset":"daily","time_zone":"Asia/Tokyo","promise":"gapless"}"#;
    assert_eq!(ask(server.http, "PUT", "/v1/series/daily", daily).0, 201);
    for (date, id) in
        [("2026-12-31", "20261231/1"), ("2027-01-01", "20270101/1"), ("2026-12-31", "20261231/2")]
    {
        let (_, answer) = ask(server.http, "POST", &format!("/v1/series/daily/next?date={date}"), "");
        assert_eq!(answer, json!({"ids": [id]}));
    }
    let (_, scopes) = ask(server.http, "GET", "/v1/series/daily/scopes", "");
    assert_eq!(scopes["scopes"][0], json!({"scope": {}, "period": "2026-12-31", "cursor": 3}));
}

#[test]
fn scopes_are_listed_page_by_page() {
    let (_data, server) = start();
    for scope in 0..25 {
        ask(server.http, "POST", &format!("/v1/series/counter/next?name=s{scope:02}"), "");
    }
    let mut seen = Vec::new();
    let mut path = "/v1/series/counter/scopes?limit=10".to_owned();
    loop {
        let (_, page) = ask(server.http, "GET", &path, "");
        seen.extend(page["scopes"].as_array().unwrap().iter().map(|scope| scope["scope"]["name"].clone()));
        let Some(after) = page["after"].as_str() else { break };
        path = format!("/v1/series/counter/scopes?limit=10&after={}", after.replace('=', "%3D"));
    }
    assert_eq!(seen, (0..25).map(|scope| json!(format!("s{scope:02}"))).collect::<Vec<_>>());
    for bad in ["limit=0", "limit=1001", "limit=x", "nonsense=1"] {
        assert_eq!(code(server.http, "GET", &format!("/v1/series/counter/scopes?{bad}"), "").0, 422, "{bad}");
    }
}

#[test]
fn a_series_that_the_configuration_took_over_ends_when_the_file_drops_it() {
    let (data, server) = start();
    let description = r#"{"pattern":"T-{seq}","key":"t"}"#;
    assert_eq!(ask(server.http, "PUT", "/v1/series/taken", description).0, 201);
    assert_eq!(server.redis_cli(&["LPOP", "t"]), "T-1");
    server.stop();
    let in_file = [("BATES_SERIES__TAKEN__PATTERN", "T-{seq}")];
    let server = Server::start_with(data.path(), "127.0.0.1:0", &in_file);
    let (_, taken) = ask(server.http, "GET", "/v1/series/taken", "");
    assert_eq!((&taken["origin"], &taken["key"]), (&json!("file"), &json!(null)));
    assert_eq!(ask(server.http, "POST", "/v1/series/taken/next", "").1, json!({"ids": ["T-2"]}));
    server.stop();
    let server = Server::start(data.path());
    assert_eq!(code(server.http, "GET", "/v1/series/taken", ""), (404, "unknown_series".to_owned()));
    assert_eq!(ask(server.http, "PUT", "/v1/series/taken", description).0, 201);
    assert_eq!(server.redis_cli(&["LPOP", "t"]), "T-3", "it continues at its cursor");
}

/// Once the retirement is answered, not even a running stream gets another number. So a series that is created again
/// under this name can become gapless.
#[test]
fn retiring_a_series_breaks_off_its_streams() {
    let (data, server) = start();
    // Long numbers, so that no buffer holds a million of them.
    let letters = "x".repeat(60);
    let description = |promise: &str| format!(r#"{{"pattern":"{letters}{{seq}}","promise":"{promise}"}}"#);
    assert_eq!(ask(server.http, "PUT", "/v1/series/gone", &description("unique")).0, 201);
    let mut stream = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
    let request = "POST /v1/series/gone/next?count=1000000 HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    // The stream has begun, and waits for its reader with most of its numbers.
    stream.read_exact(&mut [0; 1024]).unwrap();
    assert_eq!(ask(server.http, "DELETE", "/v1/series/gone", "").0, 200);
    // Read before the series is created again, since the stream would go on with the new series.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "an empty last chunk would mark it as complete");
    let other = ask(server.http, "PUT", "/v1/series/gone", &description("gapless"));
    assert_eq!(
        (other.0, &other.1["code"]),
        (409, &json!("series_pinned")),
        "its promise is pinned: {other:?}"
    );
    assert_eq!(ask(server.http, "PUT", "/v1/series/gone", &description("unique")).0, 201);
    assert_eq!(ask(server.http, "PATCH", "/v1/series/gone", r#"{"promise":"gapless"}"#).0, 200);
    let numbers = |_| -> u64 {
        let (_, answer) = ask(server.http, "POST", "/v1/series/gone/next", "");
        answer["ids"][0].as_str().unwrap().trim_start_matches('x').parse().unwrap()
    };
    let first = numbers(0);
    assert_eq!(
        (1..=50).map(numbers).collect::<Vec<_>>(),
        (first + 1..=first + 50).collect::<Vec<_>>(),
        "no gap"
    );
    server.kill();
    let server = Server::start(data.path());
    let (_, answer) = ask(server.http, "POST", "/v1/series/gone/next", "");
    assert_eq!(answer["ids"][0], format!("{letters}{}", first + 51), "no gap after a crash either");
}

#[test]
fn a_patch_merges_field_by_field_and_null_restores_the_default() {
    let (_data, server) = start();
    let path = "/v1/series/tenant";
    assert_eq!(ask(server.http, "PUT", path, r#"{"pattern":"{seq:6}","restrict":["13"]}"#).0, 201);
    for (change, pointer, expected) in [
        (r#"{"limits":{"lease_min":16}}"#, "/limits/lease_min", json!(16)),
        (r#"{"limits":{"lease_max":128}}"#, "/limits/lease_min", json!(16)),
        (r#"{"limits":{"lease_min":null}}"#, "/limits/lease_min", json!(32)),
        (r#"{"reject":"mosip"}"#, "/restrict", json!(["13"])),
        (r#"{"reject":null,"restrict":["7"]}"#, "/restrict", json!(["7"])),
    ] {
        let (status, changed) = ask(server.http, "PATCH", path, change);
        assert_eq!((status, changed.pointer(pointer)), (200, Some(&expected)), "{change}: {changed}");
    }
    let (_, bare) = ask(server.http, "PATCH", path, r#"{"restrict":null}"#);
    assert_eq!(
        (bare.get("reject"), bare.get("restrict"), &bare["limits"]["lease_max"]),
        (None, None, &json!(128))
    );
    for bad in [
        r#"{"limits":{"lease_min":-1}}"#,
        r#"{"limits":7}"#,
        r#"{"reject":7}"#,
        r#"{"restrict":"x"}"#,
        r#"{"start":5}"#,
    ] {
        assert_eq!(code(server.http, "PATCH", path, bad), (422, "bad_body".to_owned()), "{bad}");
    }
    let all = r#"{"restrict":["0","1","2","3","4","5","6","7","8","9"]}"#;
    assert_eq!(code(server.http, "PATCH", path, all), (422, "bad_series".to_owned()));
    assert_eq!(ask(server.http, "POST", "/v1/series/tenant/next", "").1, json!({"ids": ["000001"]}));
}

//! What the HTTP port keeps to itself and refuses: bounded lists, hidden positions, texts that no store can keep, deep
//! documents, and the headers of every answer.

use bates_testkit::PrivatePostgres;
use serde_json::json;

use super::audit::ask_as;
use super::http::{ask, exchange, send};
use super::running::Server;

fn start() -> (tempfile::TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    (data, server)
}

#[test]
fn series_are_listed_page_by_page() {
    let (_data, server) = start();
    for number in 0..120 {
        let path = format!("/v1/series/page-{number:03}");
        assert_eq!(ask(server.http, "PUT", &path, r#"{"pattern":"{seq}"}"#).0, 201);
    }
    let (mut names, mut sizes, mut after) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = ask(server.http, "GET", &format!("/v1/series?{after}"), "").1;
        let series = page["series"].as_array().unwrap();
        sizes.push(series.len());
        names.extend(series.iter().map(|series| series["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["after"].as_str() else { break };
        after = format!("after={next}");
    }
    assert!(sizes.len() == 2 && sizes[0] == 100, "{sizes:?}");
    assert!(names.is_sorted() && names.iter().filter(|name| name.starts_with("page-")).count() == 120);
    let first = ask(server.http, "GET", "/v1/series?limit=1", "").1;
    assert_eq!(
        (first["series"].as_array().unwrap().len(), &first["after"]),
        (1, &first["series"][0]["name"])
    );
    for (query, code) in [
        ("limit=0", "bad_count"),
        ("limit=1001", "bad_count"),
        ("after=%21", "bad_arguments"),
        ("x=1", "bad_arguments"),
    ] {
        let (status, problem) = ask(server.http, "GET", &format!("/v1/series?{query}"), "");
        assert_eq!((status, problem["code"].as_str()), (422, Some(code)), "{query}");
    }
}

#[test]
fn a_look_up_shows_the_position_of_a_shuffled_number_only_to_operators() {
    let data = tempfile::tempdir().unwrap();
    let tokens = [
        ("BATES_SECRET", "shared"),
        ("BATES_TOKENS__READER__SECRET", "one"),
        ("BATES_TOKENS__READER__MAY", "read,take"),
    ];
    let server = Server::start_with(data.path(), "127.0.0.1:0", &tokens);
    let body = r#"{"pattern":"{seq:2}-pin","order":"shuffled"}"#;
    assert_eq!(ask_as(server.http, "shared", "PUT /v1/series/pin", body).0, 201);
    assert_eq!(ask_as(server.http, "one", "POST /v1/series/pin/next", "").0, 200);
    for id in (0..100).map(|number| format!("{number:02}-pin")) {
        let has_position = |secret: &str| {
            let trace = ask_as(server.http, secret, &format!("GET /v1/ids/{id}"), "").1;
            trace["matches"][0].as_object().unwrap().contains_key("position")
        };
        assert!(!has_position("one") && has_position("shared"), "{id}");
    }
}

/// Requests with a NUL character in every place that takes a text, and the code of the refusal.
const NUL_REQUESTS: &[(&str, &str, &str, &str)] = &[
    ("GET", "/v1/series/a%00b", "", "bad_name"),
    ("POST", "/v1/series/a%00b/next", "", "bad_name"),
    ("PUT", "/v1/series/a%00b", r#"{"pattern":"{seq}"}"#, "bad_name"),
    ("GET", "/v1/ids/a%00b", "", "bad_name"),
    ("GET", "/v1/series/short/validate/a%00b", "", "bad_name"),
    ("GET", "/v1/documents/a%00b", "", "bad_name"),
    ("POST", "/v1/outbox/a%00b/retry", "", "bad_name"),
    ("POST", "/v1/leases/a%00b/return", "{}", "bad_name"),
    ("GET", "/v1/series?after=a%00b", "", "bad_arguments"),
    ("GET", "/v1/series/short/scopes?after=a%00b", "", "bad_arguments"),
    ("GET", "/v1/gaps?after=short|a%00b|1", "", "bad_arguments"),
    ("GET", "/v1/gaps?period=a%00b", "", "bad_arguments"),
    ("GET", "/v1/gaps?series=a%00b", "", "bad_arguments"),
    ("GET", "/v1/audit?who=a%00b", "", "bad_arguments"),
    ("GET", "/v1/audit?id=a%00b", "", "bad_arguments"),
    ("GET", "/v1/outbox?series=a%00b", "", "bad_arguments"),
    ("GET", "/v1/series/document/peek?project=a%00b&type=1", "", "bad_scope"),
    ("POST", "/v1/series/document/next?project=a%00b&type=1", "", "bad_scope"),
    ("POST", "/v1/series/document/next", r#"{"scope":{"project":"a\u0000","type":"1"}}"#, "bad_body"),
    ("POST", "/v1/series/document/lease", r#"{"scope":{"project":"a\u0000","type":"1"}}"#, "bad_body"),
    ("POST", "/v1/series/document/documents", r#"{"document":{"title":"a\u0000"}}"#, "bad_body"),
    ("POST", "/v1/series/document/reservations", r#"{"scope":{"project":"a\u0000"}}"#, "bad_body"),
    ("PUT", "/v1/series/zero", r#"{"pattern":"a\u0000{seq}"}"#, "bad_body"),
    ("PATCH", "/v1/series/short", r#"{"restrict":["a\u0000"]}"#, "bad_body"),
];

fn check_nul_is_refused(server: &Server) {
    for (method, path, body, code) in NUL_REQUESTS {
        let (status, problem) = ask(server.http, method, path, body);
        assert_eq!(
            (status, problem["code"].as_str()),
            (422, Some(*code)),
            "{method} {path} {body}: {problem}"
        );
    }
    let lines = "Content-Type: application/x-ndjson\r\n";
    let body = r#"{"document":{"title":"\u0000"}}"#;
    let (_, _, answer) = send(server.http, "POST /v1/series/document/documents", lines, body);
    assert!(answer.contains(r#""code":"bad_body""#), "{answer}");
    for command in [
        &b"*2\r\n$4\r\nINCR\r\n$11\r\ncounter:a\0b\r\n"[..],
        b"*2\r\n$6\r\nEXISTS\r\n$11\r\ncounter:a\0b\r\n",
        b"*2\r\n$10\r\nBATES.NEXT\r\n$3\r\na\0b\r\n",
        b"*3\r\n$14\r\nBATES.VALIDATE\r\n$3\r\na\0b\r\n$1\r\nx\r\n",
    ] {
        let answer = super::wire::exchange(server, command);
        assert!(!answer.contains("store_"), "{command:?}: {answer}");
    }
}

#[test]
fn a_nul_character_is_refused_and_not_a_failure_of_the_store() {
    let (_data, server) = start();
    check_nul_is_refused(&server);
    let postgres = PrivatePostgres::start().unwrap();
    check_nul_is_refused(&Server::node(&postgres.url()));
}

#[test]
fn every_answer_has_security_headers() {
    let (_data, server) = start();
    let common = ["x-content-type-options: nosniff", "referrer-policy: no-referrer", "x-frame-options: deny"];
    let api =
        ["cache-control: no-store", "content-security-policy: default-src 'none'; frame-ancestors 'none'"];
    let ui = ["content-security-policy: default-src 'none'; script-src 'self';"];
    for (path, origin, status, own) in [
        ("/v1/series", "", 200, &api[..]),
        ("/nothing", "", 404, &api),
        ("/docsx", "", 404, &api),
        ("/v1/series", "Origin: http://elsewhere.example\r\n", 403, &api),
        ("/healthz", "", 200, &api),
        ("/docs/", "", 200, &ui),
        ("/docs/swagger-ui.css", "", 200, &ui),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{origin}Connection: close\r\n\r\n");
        let (found, head, _) = exchange(server.http, request.as_bytes());
        assert_eq!(found, status, "{path}");
        for header in common.iter().chain(own) {
            assert_eq!(head.matches(header).count(), 1, "{path} {header}: {head}");
        }
    }
}

#[test]
fn the_document_names_each_operation_once_and_describes_answers_as_they_are() {
    let (_data, server) = start();
    let document = ask(server.http, "GET", "/openapi.json", "").1;
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
    let mut names: Vec<&str> = operations.map(|one| one["operationId"].as_str().unwrap()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(paths["/healthz"]["get"].get("parameters"), None, "a list, or absent");
    assert!(paths.contains_key("/api/v1/ids/gaps"), "the alias is described");
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["SeriesDescription"]["additionalProperties"], json!(false), "refused by the server");
    assert_eq!(schemas["Series"].get("additionalProperties"), None, "a series has more fields");
    assert_eq!(schemas["Envelope_IssuedId"]["properties"]["response"]["oneOf"][0], json!({"type": "null"}));
}

//! Every call and every error of the OpenG2P API, byte for byte except the time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use bates_testkit::{PrivatePostgres, programs};
use serde_json::{Value, json};

use super::{Setting, ask, ask_with, issue, query};
use crate::running::Client;

const TYPES: &str = "{ farmer: {id_length: 6}, household: {id_length: 6}, test_perf_id: {id_length: 10} }";

/// The body with its time replaced by `…`; the time must be present.
fn without_time(body: &str) -> String {
    let (before, rest) = body.split_once("\"responsetime\":\"").unwrap();
    let (time, after) = rest.split_once('"').unwrap();
    assert_eq!(time.len(), "2026-03-27T10:00:00.000Z".len(), "{time}");
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_eq!(shape, "9999-99-99T99:99:99.999Z");
    format!("{before}\"responsetime\":\"…\"{after}")
}

/// The envelope of a successful response.
fn envelope(response: &str) -> String {
    format!(
        "{{\"id\":\"openg2p.idgenerator\",\"version\":\"1.0\",\"responsetime\":\"…\",\"response\":{response},\"errors\":[]}}"
    )
}

/// The error code of a body whose envelope is valid.
fn code(body: &str) -> String {
    let answer: Value = serde_json::from_str(body).unwrap();
    assert_eq!(answer["response"], Value::Null, "{body}");
    let errors = answer["errors"].as_array().unwrap();
    assert!(errors.len() == 1 && errors[0]["message"].is_string(), "{body}");
    let keys = without_time(body);
    assert!(keys.starts_with(
        "{\"id\":\"openg2p.idgenerator\",\"version\":\"1.0\",\"responsetime\":\"…\",\"response\":null,\"errors\":[{\"errorCode\":"
    ));
    errors[0]["errorCode"].as_str().unwrap().to_owned()
}

#[test]
fn answers_equal_those_of_the_id_generator_byte_for_byte() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let (status, body) = ask(&server, "GET", "/health");
    assert_eq!((status, without_time(&body)), (200, envelope(r#"{"status":"UP"}"#)));
    let (status, body) = ask(&server, "POST", "/test_perf_id/id");
    let id = serde_json::from_str::<Value>(&body).unwrap()["response"]["id"].as_str().unwrap().to_owned();
    assert_eq!((status, without_time(&body)), (200, envelope(&format!(r#"{{"id":"{id}"}}"#))));
    assert!(id.len() == 10 && id.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
    let (status, body) = ask(&server, "GET", &format!("/test_perf_id/id/validate/{id}"));
    assert_eq!((status, without_time(&body)), (200, envelope(&format!(r#"{{"id":"{id}","valid":true}}"#))));
    let (status, body) = ask(&server, "GET", "/config");
    let rules = r#"{"sequence_limit":3,"repeating_limit":2,"repeating_block_limit":2,"conjugative_even_digits_limit":3,"digits_group_limit":5,"reverse_digits_group_limit":5,"not_start_with":["0","1"],"restricted_numbers":[]}"#;
    let types = r#"{"farmer":{"id_length":6},"household":{"id_length":6},"test_perf_id":{"id_length":10}}"#;
    let config = format!(r#"{{"id_types":{types},"filter_rules":{rules}}}"#);
    assert_eq!((status, without_time(&body)), (200, envelope(&config)));
    let (status, body) = ask(&server, "GET", "/version");
    let version = serde_json::from_str::<Value>(&body).unwrap()["response"].clone();
    assert_eq!((status, &version["service_version"]), (200, &json!(env!("CARGO_PKG_VERSION"))));
    assert!(version["build_time"].is_string() && version["git_commit"].is_string(), "{body}");
    let (status, body) = ask(&server, "GET", "/openapi.json");
    let openapi: Value = serde_json::from_str(&body).unwrap();
    assert!(status == 200 && openapi["openapi"].as_str().unwrap().starts_with("3."));
    for path in
        ["/{id_type}/id", "/{id_type}/ids", "/{id_type}/id/validate/{id}", "/health", "/version", "/config"]
    {
        assert!(openapi["paths"].get(format!("/v1/idgenerator{path}")).is_some(), "{path}");
    }
}

#[test]
fn errors_have_the_status_and_code_of_the_id_generator() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let long = "9".repeat(33);
    for (method, path, status, expected) in [
        ("POST", "/unknown_type/id", 404, "IDG-003"),
        ("GET", "/unknown_type/id/validate/12345", 404, "IDG-003"),
        ("POST", "/unknown_type/ids?count=2", 404, "IDG-003"),
        ("GET", "/farmer/id", 405, "method_not_allowed"),
        ("PUT", "/farmer/id", 405, "method_not_allowed"),
        ("GET", "/farmer/ids?count=1", 405, "method_not_allowed"),
        ("POST", "/farmer/id/validate/12345", 405, "method_not_allowed"),
        ("POST", "/health", 405, "method_not_allowed"),
        ("POST", "/123invalid/id", 422, "bad_name"),
        ("POST", "/UPPER/id", 422, "bad_name"),
        ("POST", "/ns%20with%20spaces/id", 422, "bad_name"),
        ("POST", "/with-dash/id", 422, "bad_name"),
        ("POST", "/x/id", 422, "bad_name"),
        ("POST", "/%ff%fe/id", 422, "bad_name"),
        ("GET", "/farmer/id/validate/abc", 422, "bad_name"),
        ("GET", "/farmer/id/validate/12.34", 422, "bad_name"),
        ("GET", "/farmer/id/validate/12%2034", 422, "bad_name"),
        ("GET", &format!("/farmer/id/validate/{long}"), 422, "bad_name"),
        ("POST", "/farmer/ids", 422, "bad_arguments"),
        ("POST", "/farmer/ids?count=1&count=2", 422, "bad_arguments"),
        ("POST", "/farmer/ids?many=2", 422, "bad_arguments"),
        ("POST", "/farmer/ids?count=0", 422, "bad_count"),
        ("POST", "/farmer/ids?count=-1", 422, "bad_count"),
        ("POST", "/farmer/ids?count=1.5", 422, "bad_count"),
        ("POST", "/farmer/ids?count=%2B1", 422, "bad_count"),
        ("POST", "/farmer/ids?count=100001", 422, "bad_count"),
        ("GET", "/nothing/here/at/all", 404, "not_found"),
    ] {
        let (found, body) = ask(&server, method, path);
        assert_eq!((found, code(&body)), (status, expected.to_owned()), "{method} {path}");
    }
}

#[test]
fn validation_matches_the_test_vectors_and_names_every_reason() {
    let lengths: Vec<String> =
        (4..=32).map(|length| format!("of_{length}: {{id_length: {length}}}")).collect();
    let setting = Setting::with(&format!("{{ {} }}", lengths.join(", ")));
    let server = setting.serve(&[("ID_GENERATOR__RESTRICTED_NUMBERS", r#"["786", "420"]"#)]);
    let vectors = include_str!("../../../../bates-pattern/tests/golden/openg2p_rules.csv");
    let mut checked = 0;
    for line in vectors.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [length, id, verdict, failed] = fields[..] else { panic!("{line}") };
        let (status, body) = ask(&server, "GET", &format!("/of_{length}/id/validate/{id}"));
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &answer["response"]["valid"]), (200, &json!(verdict == "valid")), "{line}");
        let reasons = answer["response"].get("reasons").and_then(Value::as_array).into_iter().flatten();
        let mut reasons: Vec<&str> = reasons.map(|reason| reason["code"].as_str().unwrap()).collect();
        let mut failed: Vec<&str> = failed.split_whitespace().collect();
        reasons.sort_unstable();
        failed.sort_unstable();
        assert_eq!(reasons, failed, "{line}");
        checked += 1;
    }
    assert_eq!(checked, 824);
}

#[test]
fn clients_without_a_secret_are_accepted_only_if_the_configuration_says_so() {
    let setting = Setting::with(TYPES);
    let closed = setting.serve(&[("BATES_SECRET", "open sesame")]);
    assert_eq!(ask(&closed, "POST", "/farmer/id").0, 401);
    assert_eq!(ask(&closed, "GET", "/config").0, 401);
    assert_eq!(ask(&closed, "GET", "/health").0, 200, "probes send no secret");
    assert_eq!(ask_with(&closed, "POST", "/farmer/id", "Authorization: Bearer open sesame\r\n").0, 200);
    closed.stop();
    let open = setting.serve(&[("BATES_SECRET", "open sesame"), ("BATES_OPENG2P_WITHOUT_SECRET", "true")]);
    assert_eq!(ask(&open, "POST", "/farmer/id").0, 200);
    assert_eq!(ask(&open, "GET", "/farmer/id/validate/12345").0, 200);
    let wrong = "Authorization: Bearer of yesterday\r\n";
    assert_eq!(ask_with(&open, "POST", "/farmer/id", wrong).0, 401, "a secret that is sent must be valid");
    let request = "POST /v1/series/farmer/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(crate::http::exchange(open.http, request.as_bytes()).0, 401, "nothing else is open");
    assert_eq!(ask_with(&open, "POST", "/farmer/id", "Origin: http://elsewhere.example\r\n").0, 403);
}

#[test]
fn health_distinguishes_an_incomplete_start_from_a_database_outage() {
    let mut postgres = PrivatePostgres::start().unwrap();
    let setting = Setting::with(TYPES);
    let node = setting.node(&postgres).unwrap();
    // A lock blocks the first grant of one type; everything else works.
    let psql = programs::find("psql").unwrap();
    let mut holder = std::process::Command::new(psql)
        .args(["--no-psqlrc", "--quiet", "--tuples-only", &postgres.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut holder_input = holder.stdin.take().unwrap();
    writeln!(holder_input, "BEGIN; SELECT 'held' FROM bates.series WHERE name = 'household' FOR UPDATE;")
        .unwrap();
    let mut holder_output = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(holder_output.any(|line| line.unwrap().contains("held")));
    let (status, body) = ask(&node, "GET", "/health");
    assert_eq!((status, code(&body)), (503, "IDG-005".to_owned()), "{body}");
    assert!(!body.contains("household"), "a probe without a secret learns no name: {body}");
    drop(holder_input);
    holder.wait().unwrap();
    while ask(&node, "GET", "/health").0 != 200 {}
    assert_eq!(query(&postgres, "SELECT count(*) FROM bates.cursor"), "3", "each type can issue");
    postgres.kill().unwrap();
    let (mut status, mut body) = ask(&node, "GET", "/health");
    // The server caches the result of its store check for a second.
    while status == 200 {
        (status, body) = ask(&node, "GET", "/health");
    }
    assert_eq!((status, code(&body)), (503, "IDG-006".to_owned()), "{body}");
    let mut client = Client::connect(node.http).unwrap();
    let error_code = loop {
        if let Err(code) = issue(&mut client, "farmer") {
            break code;
        }
    };
    assert_eq!(error_code, "IDG-001", "the node issues the IDs in memory, and then none");
    postgres.restart().unwrap();
    while ask(&node, "GET", "/health").0 != 200 {}
    while issue(&mut client, "farmer").is_err() {}
}

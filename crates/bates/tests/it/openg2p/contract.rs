//! Every call and every refusal of the contract, byte by byte but for the time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use bates_testkit::{PrivatePostgres, programs};
use serde_json::{Value, json};

use super::{Setting, ask, asked, issue, query};
use crate::running::Client;

const TYPES: &str = "{ farmer: {id_length: 6}, household: {id_length: 6}, test_perf_id: {id_length: 10} }";

/// The body without its time, which must be there.
fn timeless(body: &str) -> String {
    let (before, rest) = body.split_once("\"responsetime\":\"").unwrap();
    let (time, after) = rest.split_once('"').unwrap();
    assert_eq!(time.len(), "2026-03-27T10:00:00.000Z".len(), "{time}");
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_eq!(shape, "9999-99-99T99:99:99.999Z");
    format!("{before}\"responsetime\":\"…\"{after}")
}

/// What is around an answer.
fn answered(response: &str) -> String {
    format!(
        "{{\"id\":\"openg2p.idgenerator\",\"version\":\"1.0\",\"responsetime\":\"…\",\"response\":{response},\"errors\":[]}}"
    )
}

/// The code of an error, in an envelope that is otherwise as it has to be.
fn code(body: &str) -> String {
    let answer: Value = serde_json::from_str(body).unwrap();
    assert_eq!(answer["response"], Value::Null, "{body}");
    let errors = answer["errors"].as_array().unwrap();
    assert!(errors.len() == 1 && errors[0]["message"].is_string(), "{body}");
    let keys = timeless(body);
    assert!(keys.starts_with(
        "{\"id\":\"openg2p.idgenerator\",\"version\":\"1.0\",\"responsetime\":\"…\",\"response\":null,\"errors\":[{\"errorCode\":"
    ));
    errors[0]["errorCode"].as_str().unwrap().to_owned()
}

#[test]
fn what_the_id_generator_answers_is_answered_byte_by_byte() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let (status, body) = ask(&server, "GET", "/health");
    assert_eq!((status, timeless(&body)), (200, answered(r#"{"status":"UP"}"#)));
    let (status, body) = ask(&server, "POST", "/test_perf_id/id");
    let id = serde_json::from_str::<Value>(&body).unwrap()["response"]["id"].as_str().unwrap().to_owned();
    assert_eq!((status, timeless(&body)), (200, answered(&format!(r#"{{"id":"{id}"}}"#))));
    assert!(id.len() == 10 && id.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
    let (status, body) = ask(&server, "GET", &format!("/test_perf_id/id/validate/{id}"));
    assert_eq!((status, timeless(&body)), (200, answered(&format!(r#"{{"id":"{id}","valid":true}}"#))));
    let (status, body) = ask(&server, "GET", "/config");
    let rules = r#"{"sequence_limit":3,"repeating_limit":2,"repeating_block_limit":2,"conjugative_even_digits_limit":3,"digits_group_limit":5,"reverse_digits_group_limit":5,"not_start_with":["0","1"],"restricted_numbers":[]}"#;
    let types = r#"{"farmer":{"id_length":6},"household":{"id_length":6},"test_perf_id":{"id_length":10}}"#;
    let config = format!(r#"{{"id_types":{types},"filter_rules":{rules}}}"#);
    assert_eq!((status, timeless(&body)), (200, answered(&config)));
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
fn what_the_id_generator_refuses_is_refused_with_its_status_and_code() {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let long = "9".repeat(33);
    for (method, path, status, expected) in [
        ("POST", "/nobody_knows/id", 404, "IDG-003"),
        ("GET", "/nobody_knows/id/validate/12345", 404, "IDG-003"),
        ("POST", "/nobody_knows/ids?count=2", 404, "IDG-003"),
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
fn a_text_is_judged_as_the_vectors_say_and_every_reason_is_told() {
    let lengths: Vec<String> =
        (4..=32).map(|length| format!("of_{length}: {{id_length: {length}}}")).collect();
    let setting = Setting::with(&format!("{{ {} }}", lengths.join(", ")));
    let server = setting.serve(&[("ID_GENERATOR__RESTRICTED_NUMBERS", r#"["786", "420"]"#)]);
    let vectors = include_str!("../../../../bates-pattern/tests/golden/openg2p_rules.csv");
    let mut judged = 0;
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
        judged += 1;
    }
    assert_eq!(judged, 824);
}

#[test]
fn clients_that_know_no_secret_are_let_in_only_where_that_is_said() {
    let setting = Setting::with(TYPES);
    let closed = setting.serve(&[("BATES_SECRET", "open sesame")]);
    assert_eq!(ask(&closed, "POST", "/farmer/id").0, 401);
    assert_eq!(ask(&closed, "GET", "/config").0, 401);
    assert_eq!(ask(&closed, "GET", "/health").0, 200, "probes send no secret");
    assert_eq!(asked(&closed, "POST", "/farmer/id", "Authorization: Bearer open sesame\r\n").0, 200);
    closed.stop();
    let open = setting.serve(&[("BATES_SECRET", "open sesame"), ("BATES_OPENG2P_WITHOUT_SECRET", "true")]);
    assert_eq!(ask(&open, "POST", "/farmer/id").0, 200);
    assert_eq!(ask(&open, "GET", "/farmer/id/validate/12345").0, 200);
    let wrong = "Authorization: Bearer of yesterday\r\n";
    assert_eq!(asked(&open, "POST", "/farmer/id", wrong).0, 401, "whoever says who it is must be right");
    let request = "POST /v1/series/farmer/next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!(crate::http::exchange(open.http, request.as_bytes()).0, 401, "nothing else is open");
    assert_eq!(asked(&open, "POST", "/farmer/id", "Origin: http://elsewhere.example\r\n").0, 403);
}

#[test]
fn health_tells_a_start_that_is_not_complete_from_a_database_that_is_away() {
    let mut postgres = PrivatePostgres::start().unwrap();
    let setting = Setting::with(TYPES);
    let node = setting.node(&postgres).unwrap();
    // Somebody holds what the first grant of a type needs; everything else works.
    let psql = programs::find("psql").unwrap();
    let mut holder = std::process::Command::new(psql)
        .args(["--no-psqlrc", "--quiet", "--tuples-only", &postgres.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut say = holder.stdin.take().unwrap();
    writeln!(say, "BEGIN; SELECT 'held' FROM bates.series WHERE name = 'household' FOR UPDATE;").unwrap();
    let mut heard = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(heard.any(|line| line.unwrap().contains("held")));
    let (status, body) = ask(&node, "GET", "/health");
    assert_eq!((status, code(&body)), (503, "IDG-005".to_owned()), "{body}");
    assert!(body.contains("household"), "{body}");
    drop(say);
    holder.wait().unwrap();
    while ask(&node, "GET", "/health").0 != 200 {}
    assert_eq!(query(&postgres, "SELECT count(*) FROM bates.cursor"), "3", "each type can issue");
    postgres.kill().unwrap();
    let (mut status, mut body) = ask(&node, "GET", "/health");
    // What was seen a moment ago is good for a second.
    while status == 200 {
        (status, body) = ask(&node, "GET", "/health");
    }
    assert_eq!((status, code(&body)), (503, "IDG-006".to_owned()), "{body}");
    let mut client = Client::connect(node.http).unwrap();
    let told = loop {
        if let Err(told) = issue(&mut client, "farmer") {
            break told;
        }
    };
    assert_eq!(told, "IDG-001", "what is held in memory is given out, and then none");
    postgres.restart().unwrap();
    while ask(&node, "GET", "/health").0 != 200 {}
    while issue(&mut client, "farmer").is_err() {}
}

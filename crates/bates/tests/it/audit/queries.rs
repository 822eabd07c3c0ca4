//! Queries of the audit over HTTP and with `bates audit`, and the refusal of bad ones.

use std::process::Command;

use serde_json::json;

use super::super::documents::Home;
use super::super::running::Server;
use super::{TOKENS, ask_as, ask_with, entries, summaries};

const SERIES: &str = "  d: { pattern: \"{p}-{seq}\", audit: true }
  s: { pattern: \"{seq:base62:6}\", order: shuffled, audit: true }
  y: { pattern: \"Y{date:%Y%m%d}-{seq}\", reset: yearly, audit: true }
  e: { pattern: \"{p}-{seq}\" }
";

fn start_with_entries(home: &Home) -> (Server, Vec<String>) {
    let server = home.start_with(SERIES, &TOKENS);
    let take = |secret: &str, path: &str| {
        let (status, answer) = ask_as(server.http, secret, &format!("POST /v1/series/{path}"), "");
        assert_eq!(status, 200, "{answer}");
        let ids = answer["ids"].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    take("one", "d/next?p=A&count=10");
    take("two", "d/next?p=B&count=5");
    take("two", "d/next?p=A&count=2");
    take("one", "y/next?date=2026-03-01");
    take("one", "y/next?date=2026-04-01");
    let mut shuffled = take("one", "s/next?count=3");
    shuffled.extend(take("two", "s/next?count=3"));
    (server, shuffled)
}

#[test]
fn entries_are_found_by_number_scope_caller_and_time_in_pages() {
    for home in [Home::folder(), Home::postgres()] {
        let (server, shuffled) = start_with_entries(&home);
        let found = |query: &str| summaries(&entries(server.http, query));
        assert_eq!(found("&series=d&id=A-11"), ["clinic http A-11..A-12 2"]);
        assert_eq!(found("&series=d&id=A-10"), ["registry http A-1..A-10 10"]);
        assert_eq!(found("&series=d&id=A-13"), [""; 0], "no caller took it");
        assert_eq!(found("&series=d&p=B"), ["clinic http B-1..B-5 5"]);
        assert_eq!(found("&series=d&who=clinic"), ["clinic http B-1..B-5 5", "clinic http A-11..A-12 2"]);
        assert_eq!(
            found("&series=y&period=2026"),
            ["registry http Y20260301-1..Y20260301-1 1", "registry http Y20260401-2..Y20260401-2 1"],
            "each number shows the date that it was issued with"
        );
        for (at, number) in shuffled.iter().enumerate() {
            let caller = if at < 3 { "registry" } else { "clinic" };
            let matches = found(&format!("&id={number}"));
            assert!(matches.len() == 1 && matches[0].starts_with(caller), "{number}: {matches:?}");
        }
        assert_eq!(found("&since=2100-01-01"), [""; 0]);
        let all = entries(server.http, "");
        let until = all[1]["at"].as_str().unwrap();
        assert_eq!(summaries(&entries(server.http, &format!("&until={until}"))), summaries(&all)[..1]);
        let (_, page) = ask_as(server.http, "shared", "GET /v1/audit?limit=2", "");
        assert_eq!(page["entries"], json!(all[..2]));
        assert!(page["after"].is_string());
        let headers = "Accept: text/csv\r\n";
        let (_, csv) = ask_with(server.http, "shared", headers, "GET /v1/audit?series=d&p=B", "");
        let at = all[1]["at"].as_str().unwrap();
        let expected = format!(
            "series,scope,from,to,first,last,count,who,how,at\nd,\"p=B\",1,6,\"B-1\",\"B-5\",5,\"clinic\",http,{at}\n"
        );
        assert_eq!(csv, expected);
    }
}

#[test]
fn a_bad_query_is_refused_and_the_error_names_the_field() {
    let home = Home::folder();
    let (server, _) = start_with_entries(&home);
    for (query, code, message) in [
        ("limit=0", "bad_count", "limit is \"0\"; expected 1 to 10000"),
        ("limit=10001", "bad_count", "limit is \"10001\"; expected 1 to 10000"),
        ("since=yesterday", "bad_arguments", "since: \"yesterday\" is not a valid time"),
        ("until=2026-13-01", "bad_arguments", "until: \"2026-13-01\" is not a valid time"),
        ("since=-005000-01-01", "bad_arguments", "is not a valid time"),
        ("period=%00x", "bad_arguments", "period: "),
        ("who=%07", "bad_arguments", "who: "),
        ("series=d&q=B", "bad_arguments", "unknown parameter \"q\": expected one of after, id, limit, p, "),
        ("series=d&sinse=2026-01-01", "bad_arguments", "unknown parameter \"sinse\": did you mean since?"),
        ("series=d&period=2026", "bad_scope", "there is no period \"2026\": the numbering never restarts"),
        ("series=y&period=2026-01", "bad_scope", "there is no period \"2026-01\": expected one such as 2026"),
        ("after=7", "bad_arguments", "after: \"7\" is not the after of a previous page"),
        ("series=UPPER", "bad_name", "UPPER"),
        ("id=%21", "bad_arguments", "id: \"!\" is not a number of any series"),
        ("id=A-1", "bad_arguments", "id: \"A-1\" matches several series: add the parameter series"),
        ("series=s&id=A-1", "bad_arguments", "id: \"A-1\" is not a number of series \"s\""),
        ("series=d&id=A-1&p=B", "bad_arguments", "belongs to another scope"),
        ("series=d&p=%20", "bad_scope", "parameter \"p\""),
    ] {
        let (status, problem) = ask_as(server.http, "shared", &format!("GET /v1/audit?{query}"), "");
        assert_eq!((status, &problem["code"]), (422, &json!(code)), "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(message), "{query}: {problem}");
    }
    let (status, _) = ask_as(server.http, "shared", "GET /v1/audit?series=unknown&id=A-1", "");
    assert_eq!(status, 404);
}

#[test]
fn the_command_shows_a_table_json_or_csv() {
    let home = Home::folder();
    let (server, _) = start_with_entries(&home);
    let bates = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["audit", "--url", &format!("http://127.0.0.1:{}", server.http)])
            .args(arguments)
            .env("BATES_SECRET", "two")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = bates(&["d", "p=A"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["AT", "WHO", "HOW", "SERIES", "SCOPE", "FIRST", "LAST", "COUNT"]);
    assert_eq!(lines[1][1..], ["registry", "http", "d", "p=A", "A-1", "A-10", "10"]);
    assert_eq!((lines.len(), lines[2][1]), (3, "clinic"));
    let json = bates(&["--id", "A-11", "d", "--json"]);
    assert!(json.lines().count() == 1 && json.contains("\"who\":\"clinic\""), "{json}");
    assert_eq!(bates(&["--limit", "3", "--json"]).lines().count(), 3);
    assert!(bates(&["d", "p=B", "--csv"]).contains("d,\"p=B\",1,6,\"B-1\",\"B-5\",5,\"clinic\",http,"));
    assert_eq!(bates(&["--who", "unknown", "--csv"]).lines().count(), 1);
}

#[test]
fn the_api_switches_an_audit_on_and_off_and_refuses_bad_settings() {
    for home in [Home::folder(), Home::postgres()] {
        let server = home.start_with(SERIES, &TOKENS);
        let ask = |request: &str, body: &str| ask_as(server.http, "one", request, body);
        assert_eq!(ask("PUT /v1/series/t", r#"{"pattern":"T{seq}"}"#).0, 201);
        assert_eq!(ask("POST /v1/series/t/next", "").0, 200);
        let (status, amended) = ask("PATCH /v1/series/t", r#"{"audit":{"retention_hours":24}}"#);
        assert_eq!((status, &amended["audit"]), (200, &json!({"retention_hours": 24})));
        assert_eq!(ask("POST /v1/series/t/next", "").0, 200);
        let (status, amended) = ask("PATCH /v1/series/t", r#"{"audit":null}"#);
        assert_eq!((status, amended.get("audit")), (200, None), "{amended}");
        assert_eq!(ask("POST /v1/series/t/next", "").0, 200);
        assert_eq!(summaries(&entries(server.http, "&series=t")), ["registry http T2..T2 1"]);
        for wrong in [r#"{"audit":1}"#, r#"{"audit":{"hours":1}}"#, r#"{"audit":{"retention_hours":0}}"#] {
            let (status, problem) = ask("PATCH /v1/series/t", wrong);
            assert_eq!(status, 422, "{wrong}: {problem}");
        }
    }
}

//! Lists that are asked for something that does not exist: refused, never answered as if there was nothing to show.

use std::process::Command;

use serde_json::{Value, json};

use super::audit::{TOKENS, ask_as, ask_with};
use super::documents::Home;
use super::running::Server;

const SERIES: &str = "  document: { pattern: \"{project}-{type}-{seq}\", audit: true }
  yearly: { pattern: \"{p}-{date:%Y}-{seq}\", reset: yearly, audit: true }
";

fn start(home: &Home) -> Server {
    let server = home.start_with(SERIES, &TOKENS);
    for scope in ["project=A&type=1", "project=A&type=2", "project=B&type=1"] {
        let lease = json!({ "scope": {"project": &scope[8..9], "type": &scope[15..]}, "count": 3 });
        let (_, lease) = ask(&server, "POST /v1/series/document/lease", &lease.to_string());
        let path = format!("POST /v1/leases/{}/return", lease["lease"].as_str().unwrap());
        let first = &lease["ranges"][0]["first"];
        ask(&server, &path, &json!({ "unused": [{ "first": first, "last": first }] }).to_string());
    }
    ask(&server, "POST /v1/series/yearly/next?p=X&date=2026-03-01", "");
    ask(&server, "POST /v1/reconcile", "");
    server
}

fn ask(server: &Server, request: &str, body: &str) -> (u16, Value) {
    let (status, answer) = ask_as(server.http, "shared", request, body);
    (status, answer)
}

/// Lists, and whether they are limited to scopes.
const LISTS: [(&str, bool); 6] = [
    ("/v1/gaps", true),
    ("/api/v1/ids/gaps", true),
    ("/v1/audit", true),
    ("/v1/outbox", false),
    ("/v1/leases", false),
    ("/v1/operations", false),
];

#[test]
fn a_misspelt_series_parameter_period_or_scope_is_refused_on_both_stores() {
    for home in [Home::folder(), Home::postgres()] {
        let server = start(&home);
        for (list, has_scopes) in LISTS {
            let refused = |query: &str| {
                let (status, problem) = ask(&server, &format!("GET {list}?{query}"), "");
                let text = |field: &str| problem[field].as_str().unwrap_or_default().to_owned();
                (status, text("code"), text("detail"))
            };
            let is = |query: &str, status: u16, code: &str, detail: &str| {
                assert_eq!(refused(query), (status, code.to_owned(), detail.to_owned()), "{list}?{query}");
            };
            let unknown = "unknown_series";
            is("series=dokument", 404, unknown, "there is no series \"dokument\": did you mean document?");
            is("series=nope", 404, unknown, "there is no series \"nope\"");
            let bad = "bad_arguments";
            is("seris=document", 422, bad, "unknown parameter \"seris\": did you mean series?");
            if !has_scopes {
                assert_eq!(refused("project=A").0, 422, "{list}");
                continue;
            }
            for query in ["projct=A", "series=document&projct=A", "series=document&project=A&tpye=1"] {
                assert_eq!((refused(query).0, &*refused(query).1), (422, bad), "{list}?{query}");
            }
            is("projct=A", 422, bad, "unknown parameter \"projct\": did you mean project?");
            is(
                "series=yearly&project=A",
                422,
                bad,
                &format!(
                    "unknown parameter \"project\": expected one of {}",
                    if list == "/v1/audit" {
                        "after, id, limit, p, period, series, since, until, who"
                    } else {
                        "after, limit, p, period, series"
                    }
                ),
            );
            let never = "no number was ever issued in the scope";
            is(
                "series=document&project=A&type=9",
                404,
                "unknown_scope",
                &format!("{never} \"project=A type=9\""),
            );
            is("series=yearly&p=X&period=2025", 404, "unknown_scope", &format!("{never} \"p=X @2025\""));
            let period = "there is no period";
            is(
                "series=yearly&period=26",
                422,
                "bad_scope",
                &format!("{period} \"26\": expected one such as 2026"),
            );
            is(
                "series=document&period=2026",
                422,
                "bad_scope",
                &format!("{period} \"2026\": the numbering never restarts"),
            );
        }
    }
}

#[test]
fn some_parameters_of_a_scope_are_a_filter_on_both_stores() {
    for home in [Home::folder(), Home::postgres()] {
        let server = start(&home);
        let scopes = |list: &str, query: &str| -> Vec<String> {
            let (status, page) = ask(&server, &format!("GET {list}?{query}"), "");
            assert_eq!(status, 200, "{query}: {page}");
            let items = page.get("gaps").or(page.get("entries")).unwrap().as_array().unwrap().iter();
            let value =
                |item: &Value, name: &str| item["scope"][name].as_str().unwrap_or_default().to_owned();
            let mut scopes: Vec<_> =
                items.map(|item| value(item, "project") + &value(item, "type") + &value(item, "p")).collect();
            scopes.sort();
            scopes
        };
        for (list, of_all) in [("/v1/gaps", ""), ("/v1/audit", "X")] {
            let with_others = |scopes: &[&str]| {
                scopes
                    .iter()
                    .copied()
                    .chain((!of_all.is_empty()).then_some(of_all))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(scopes(list, ""), with_others(&["A1", "A2", "B1"]), "{list}");
            assert_eq!(scopes(list, "series=document&project=A"), ["A1", "A2"], "{list}");
            assert_eq!(scopes(list, "type=1"), ["A1", "B1"], "{list}");
            assert_eq!(scopes(list, "series=document&type=2&project=A"), ["A2"], "{list}");
            assert_eq!(scopes(list, "series=document&project=C"), [""; 0], "{list}");
        }
        assert_eq!(scopes("/v1/audit", "series=yearly&period=2026"), ["X"]);
        assert_eq!(scopes("/v1/audit", "series=yearly&period=2025"), [""; 0]);
    }
}

#[test]
fn a_retired_series_is_still_listed() {
    for home in [Home::folder(), Home::postgres()] {
        let server = start(&home);
        let described = r#"{"pattern":"{tenant}-{seq}","audit":true}"#;
        assert_eq!(ask(&server, "PUT /v1/series/spare", described).0, 201);
        assert_eq!(ask(&server, "POST /v1/series/spare/next?tenant=T", "").0, 200);
        assert_eq!(ask(&server, "DELETE /v1/series/spare", "").0, 200);
        let (status, page) = ask(&server, "GET /v1/audit?series=spare&tenant=T", "");
        assert_eq!((status, &page["entries"][0]["first"]), (200, &json!("T-1")), "{page}");
        assert_eq!(ask(&server, "GET /v1/gaps?series=spare", "").0, 200);
        let (status, problem) = ask(&server, "GET /v1/gaps?series=spare&tenent=T", "");
        assert_eq!(status, 422, "{problem}");
    }
}

#[test]
fn gaps_say_as_of_when_they_are_and_which_numbers_are_missing() {
    let shuffled = "  short: { pattern: \"{seq:6}\", order: shuffled }\n";
    for home in [Home::folder(), Home::postgres()] {
        // Only the test reconciles.
        let mut environment = vec![("BATES_RECONCILE_MINUTES", "0")];
        environment.extend(TOKENS);
        let server = home.start_with(&format!("{SERIES}{shuffled}"), &environment);
        for (series, scope) in [("document", json!({"project": "A", "type": "1"})), ("short", json!({}))] {
            let lease = json!({ "scope": scope, "count": 9 }).to_string();
            let (_, lease) = ask(&server, &format!("POST /v1/series/{series}/lease"), &lease);
            let path = format!("POST /v1/leases/{}/return", lease["lease"].as_str().unwrap());
            assert_eq!(ask(&server, &path, r#"{"unused":[{"first":2,"last":4}]}"#).0, 200);
        }
        let gaps = |query: &str| ask(&server, &format!("GET /v1/gaps?{query}"), "").1;
        assert_eq!(gaps("series=document"), json!({ "gaps": [], "reconciled_at": null }));
        assert_eq!(ask(&server, "POST /v1/reconcile?series=document", "").0, 200);
        let page = gaps("series=document");
        let gap = &page["gaps"][0];
        assert!(page["reconciled_at"].is_string(), "{page}");
        let shown = ["first", "last", "first_number", "last_number"].map(|name| &gap[name]);
        assert_eq!(shown, [&json!(2), &json!(4), &json!("A-1-2"), &json!("A-1-4")]);
        assert_eq!(gaps("")["reconciled_at"], json!(null), "the other series were not reconciled yet");
        assert_eq!(ask(&server, "POST /v1/reconcile", "").0, 200);
        assert!(gaps("")["reconciled_at"].is_string());
        let (_, csv) =
            ask_with(server.http, "shared", "Accept: text/csv\r\n", "GET /v1/gaps?series=document", "");
        assert!(csv.contains(",\"A-1-2\",\"A-1-4\"\n"), "{csv}");
        // With its position, a number would tell the order of those to come.
        for (secret, is_shown) in [("one", false), ("shared", true)] {
            let (_, page) = ask_as(server.http, secret, "GET /v1/gaps?series=short", "");
            assert_eq!(page["gaps"][0]["first_number"].is_string(), is_shown, "{secret}: {page}");
        }
        let note = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
            command.args(["gaps", "document", "--url", &format!("http://127.0.0.1:{}", server.http)]);
            command.env("BATES_SECRET", "shared").output().unwrap()
        };
        let output = note();
        let [table, note] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(table.contains("A-1-2 … A-1-4") && note.contains("reconciled at 20"), "{table}{note}");
    }
}

#[test]
fn the_commands_fail_instead_of_printing_an_empty_list() {
    let home = Home::folder();
    let server = start(&home);
    for (arguments, code, message) in [
        (
            &["gaps", "dokument"][..],
            2,
            "unknown_series: there is no series \"dokument\": did you mean document?",
        ),
        (
            &["gaps", "document", "projct=A"],
            2,
            "bad_arguments: unknown parameter \"projct\": did you mean project?",
        ),
        (
            &["gaps", "document", "project=Z", "type=1"],
            1,
            "unknown_scope: no number was ever issued in the scope",
        ),
        (&["audit", "dokument"], 2, "unknown_series: "),
        (&["audit", "document", "typ=1"], 2, "bad_arguments: unknown parameter \"typ\": did you mean type?"),
        (&["outbox", "--series", "dokument"], 2, "unknown_series: "),
        (&["outbox", "retry", "--all", "--series", "dokument"], 2, "unknown_series: "),
        (&["leases", "dokument"], 2, "unknown_series: "),
        (&["operations", "--series", "dokument"], 2, "unknown_series: "),
        (&["reconcile", "dokument"], 2, "unknown_series: "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(arguments)
            .args(["--url", &format!("http://127.0.0.1:{}", server.http)])
            .env("BATES_SECRET", "shared")
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}: nothing may look like a list");
    }
}

//! Every operation of HTTP and every Redis command, tried by callers with one right each, by another tenant, and by
//! strangers. `docs/rights.md` is the result.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{ACME, CALLERS, Rig, STRANGERS};

const HEAD: &str = "# Who may do what

A token has rights (`may`), and optionally series and scopes to which they are limited
([configuration](configuration.md#tokens)). Each row below is one operation, tried on a real server by a
caller without a secret, one with a wrong secret, five tokens with one right each, the token of another
tenant with every right for its own series, and the token of the tenant that owns the series.

| cell | means |
|---|---|
| yes | the caller reached the operation |
| 401 | a secret is needed (`-NOAUTH`) |
| 403 | the caller may read the series, or needs no series, but lacks the right (`-NOPERM`) |
| 404 | for this caller the series, document, lease or number does not exist |
| own | the list, without anything of the other tenant |

All of these tokens are limited to the series of one tenant. The chains of the operations log show
every series: they need `admin` without such a limit.

This page is generated: `BATES_TEST_BLESS=1 cargo test -p bates --test it rights::matrix`.
";

/// Answers that say that something does not exist.
const UNKNOWN: [&str; 7] = [
    "unknown_series",
    "unknown_document",
    "unknown_lease",
    "unknown_token",
    "unknown_id",
    "IDG-003",
    "bad_key",
];

/// Operations that need no secret: they show nothing of any series.
const PUBLIC: [&str; 4] = ["check_liveness", "check_readiness", "check_health", "show_version"];

/// Operations that show all series: they need a right that is not limited to some.
const UNLIMITED: [&str; 2] = ["list_chains", "list_chain_records"];

#[test]
fn every_operation_needs_its_right_and_shows_nothing_of_another_tenant() {
    let rig = Rig::start();
    let mut page = HEAD.to_owned();
    page.push_str("\n## HTTP\n");
    write_head(&mut page, "operation");
    let (_, api) = rig.ask("shared", "GET /openapi.json", "");
    for (path, methods) in api["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let (id, method) = (operation["operationId"].as_str().expect("an id"), method.to_uppercase());
            let cells: Vec<String> = CALLERS.map(|caller| try_http(&rig, caller, id, &method, path)).into();
            check_row(id, &cells, PUBLIC.contains(&id));
            writeln!(page, "| `{method} {path}` | {} |", cells.join(" | ")).expect("a line");
        }
    }
    page.push_str("\n## Redis protocol\n");
    write_head(&mut page, "command");
    for command in rig.commands() {
        let cells: Vec<String> = CALLERS.map(|caller| try_resp(&rig, caller, &command)).into();
        let is_basic = sample(&command).is_none();
        if !is_basic {
            check_row(&command, &cells, false);
            writeln!(page, "| `{}` | {} |", command.to_uppercase(), cells.join(" | ")).expect("a line");
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rights.md");
    if std::env::var_os("BATES_TEST_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page");
    }
    assert_eq!(std::fs::read_to_string(path).expect("the page"), page, "docs/rights.md is out of date");
}

fn write_head(page: &mut String, first: &str) {
    write!(page, "\n| {first} | {} |\n|---|", CALLERS.join(" | ")).expect("a line");
    page.push_str(&"---|".repeat(CALLERS.len()));
    page.push('\n');
}

/// Exactly one right opens an operation; strangers and other tenants reach nothing of this one.
fn check_row(operation: &str, cells: &[String], is_public: bool) {
    let row: BTreeMap<&str, &str> = CALLERS.into_iter().zip(cells.iter().map(String::as_str)).collect();
    if is_public {
        assert!(cells.iter().all(|cell| cell == "yes"), "{operation}: {row:?}");
        return;
    }
    for stranger in STRANGERS {
        assert_eq!(row[stranger], "401", "{operation}: {row:?}");
    }
    if UNLIMITED.contains(&operation) {
        assert!(row.iter().all(|(caller, cell)| STRANGERS.contains(caller) || *cell == "403"), "{row:?}");
        return;
    }
    let rights = ["read", "take", "define", "operate", "admin"];
    assert_eq!(rights.iter().filter(|right| row[**right] == "yes").count(), 1, "{operation}: {row:?}");
    assert!(["own", "403", "404"].contains(&row["other"]), "{operation}: {row:?}");
    assert_eq!(row[ACME], "yes", "{operation}: {row:?}");
}

/// What became of a request, as a cell of the table.
fn try_http(rig: &Rig, caller: &str, id: &str, method: &str, path: &str) -> String {
    let target = rig.target(id, caller);
    let series = if id == "retire_series" { "acme.spare" } else { "acme.letter" };
    let series = if id == "create_series" { "acme.created" } else { series };
    let mut path = path.replace("{series}", series).replace("{id_type}", "acme_id");
    for name in ["{id}", "{lease}", "{token}", "{name}", "{chain}"] {
        path = path.replace(name, &target);
    }
    let (query, body) = match id {
        "create_series" => ("", json!({ "pattern": "C-{seq}", "key": "acme:created" })),
        "change_series" => ("", json!({ "audit": true })),
        "number_document" => ("", json!({ "document": { "title": "Plan" } })),
        "take_lease" | "next_pool_numbers" => ("", json!({ "count": 1 })),
        "attach_to_pool" => ("", json!({ "run_id": "a", "replication_id": "b" })),
        "return_lease" => ("", json!({ "unused": [] })),
        "add_token" => {
            let may = if caller == ACME { "read" } else { "admin" };
            let grant = json!({ "may": [may], "series": ["acme.*"] });
            ("", json!({ "name": format!("{caller}.made"), "grant": grant }))
        }
        "issue_ids" => ("?count=1", Value::Null),
        _ => ("", Value::Null),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = rig.ask_text(caller, &format!("{method} {path}{query}"), &body);
    let json: Value = serde_json::from_str(&answer).unwrap_or_default();
    let code = json["code"].as_str().or(json["errors"][0]["errorCode"].as_str()).unwrap_or_default();
    match status {
        401 => "401".to_owned(),
        403 => "403".to_owned(),
        404 if UNKNOWN.contains(&code) => "404".to_owned(),
        _ if caller != "other" || PUBLIC.contains(&id) => "yes".to_owned(),
        200 if !answer.contains("acme") && !answer.contains("L-1") => "own".to_owned(),
        _ => panic!("{id}: the other tenant got {status} {answer}"),
    }
}

/// Arguments that name a scope of the tenant; `None` for a command that names no series.
fn sample(command: &str) -> Option<&'static [&'static str]> {
    Some(match command {
        "incrby" => &["acme:count", "2"],
        "incr" | "get" | "mget" | "exists" | "type" | "llen" => &["acme:count"],
        "lpop" | "rpop" => &["acme:letter"],
        "bates.next" | "bates.peek" => &["acme.letter"],
        "bates.validate" => &["acme.letter", "L-1"],
        "ping" | "echo" | "hello" | "auth" | "reset" | "quit" | "select" | "time" | "client" | "command"
        | "config" | "info" | "multi" | "exec" | "discard" | "watch" | "unwatch" | "subscribe"
        | "unsubscribe" | "cluster" | "role" => return None,
        new => panic!("{new} is a new command: say which scope it can name"),
    })
}

fn try_resp(rig: &Rig, caller: &str, command: &str) -> String {
    let Some(arguments) = sample(command) else { return String::new() };
    let answer = rig.command(caller, &[&[command], arguments].concat());
    match answer.split([' ', ':']).next().unwrap_or_default() {
        "-NOAUTH" => "401".to_owned(),
        "-NOPERM" => "403".to_owned(),
        // Nil for a key that the caller may not read.
        "$-1" if command == "mget" => "404".to_owned(),
        "-ERR" if UNKNOWN.iter().any(|code| answer.contains(code)) => "404".to_owned(),
        _ => "yes".to_owned(),
    }
}

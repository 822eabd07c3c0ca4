//! Requests that open, return and list client leases.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::documents::Home;
use super::Stage;

fn ids(answer: &Value) -> Vec<&str> {
    answer["numbers"].as_array().unwrap().iter().map(|number| number["id"].as_str().unwrap()).collect()
}

#[test]
fn a_lease_is_a_range_if_the_client_can_render_it_and_a_list_of_numbers_otherwise() {
    let stage = Stage::on(Home::folder());
    let range =
        stage.post("/v1/series/document/lease", r#"{"scope":{"project":"A","type":"1"},"count":100}"#);
    assert_eq!(range["ranges"], json!([{"first": 1001, "last": 1100}]));
    assert_eq!((&range["template"], &range["construction"]), (&json!("{project}-{type}-{seq}"), &json!(1)));
    assert!(range["numbers"].is_null() && range["good_for_ms"].is_null(), "{range}");
    let again = stage.post("/v1/series/document/next", r#"{"scope":{"project":"A","type":"1"}}"#);
    assert_eq!(again["ids"], json!(["A-1-1101"]), "leased numbers go to no other caller");
    let numbers = stage.post(
        "/v1/series/document/lease",
        r#"{"scope":{"project":"A","type":"1"},"count":2,"numbers":true}"#,
    );
    assert_eq!(ids(&numbers), ["A-1-1102", "A-1-1103"]);
    for series in ["short", "farmer", "plain", "daily", "fiscal"] {
        let leased = stage.post(&format!("/v1/series/{series}/lease"), r#"{"count":20}"#);
        assert_eq!(ids(&leased).len(), 20, "{leased}");
        let all: Vec<&str> = leased.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: &[&str] = if series == "daily" {
            &["good_for_ms", "lease", "numbers", "ranges"]
        } else {
            &["lease", "numbers", "ranges"]
        };
        // On the last day of a year a lease of this series has a time limit, too.
        assert!(all == expected || series == "fiscal", "no field reveals the key of the shuffle: {all:?}");
        for id in ids(&leased) {
            let (_, verdict) = stage.ask("GET", &format!("/v1/series/{series}/validate/{id}"), "");
            assert_eq!(verdict["valid"], true, "{series} {id}: {verdict}");
        }
    }
    let dated = stage.post("/v1/series/daily/lease", r#"{"count":5,"date":"2026-12-31"}"#);
    assert_eq!((&dated["ranges"], &dated["reset"]), (&json!([{"first": 1, "last": 5}]), &json!("daily")));
}

#[test]
fn a_lease_gets_the_last_numbers_and_the_next_one_is_refused() {
    let stage = Stage::on(Home::folder());
    let all = stage.post("/v1/series/digit/lease", r#"{"count":100}"#);
    assert_eq!(all["ranges"], json!([{"first": 1, "last": 9}]));
    let (status, none) = stage.ask("POST", "/v1/series/digit/lease", r#"{"count":1}"#);
    assert_eq!((status, &none["code"]), (410, &json!("exhausted")));
}

#[test]
fn bad_requests_change_nothing() {
    let stage = Stage::on(Home::folder());
    let lease =
        stage.post("/v1/series/ticket/lease", r#"{"count":10}"#)["lease"].as_str().unwrap().to_owned();
    let back = format!("/v1/leases/{lease}/return");
    let too_many_ranges: Vec<Value> = (0..10_001).map(|at| json!({"first": at, "last": at})).collect();
    let too_many_ranges = json!({ "unused": too_many_ranges }).to_string();
    let too_many_leases: Vec<String> = (0..1_001).map(|_| lease.clone()).collect();
    let too_many_leases = json!({ "count": 1, "used": too_many_leases }).to_string();
    let cases = [
        ("/v1/series/queue/lease", r#"{"count":1}"#, 409, "not_unique"),
        ("/v1/series/bill/lease", r#"{"count":1}"#, 409, "not_unique"),
        ("/v1/series/nothing/lease", r#"{"count":1}"#, 404, "unknown_series"),
        ("/v1/series/ticket/lease", r#"{"count":0}"#, 422, "bad_count"),
        ("/v1/series/ticket/lease", r#"{"count":1000001}"#, 422, "bad_count"),
        ("/v1/series/ticket/lease", r"{}", 422, "bad_body"),
        ("/v1/series/ticket/lease", r#"{"count":1,"key":"x"}"#, 422, "bad_body"),
        ("/v1/series/ticket/lease", "", 400, "bad_request"),
        ("/v1/series/ticket/lease", &too_many_leases, 422, "bad_body"),
        ("/v1/series/ticket/lease", r#"{"count":1,"scope":{"a":"b"}}"#, 422, "bad_scope"),
        ("/v1/series/daily/lease", r#"{"count":1,"date":"2026-02-30"}"#, 422, "bad_body"),
        (&back, r#"{"unused":[{"first":5,"last":4}]}"#, 422, "bad_body"),
        (&back, r#"{"unused":[{"first":5,"last":18446744073709551615}]}"#, 422, "bad_body"),
        (&back, &too_many_ranges, 422, "bad_body"),
        (&back, "{}", 422, "bad_body"),
        (&back, r#"{"unused":[{"first":10,"last":11}]}"#, 422, "not_of_lease"),
        (&back, r#"{"unused":[{"first":0,"last":5000}]}"#, 422, "not_of_lease"),
        (&back, r#"{"unused":[{"first":5,"last":6},{"first":5000,"last":5000}]}"#, 422, "not_of_lease"),
        ("/v1/leases/x/return", r#"{"unused":[]}"#, 404, "unknown_lease"),
        ("/v1/leases/01a1e19c-cd3f-7336-a8ad-4c01672ab58a/return", r#"{"unused":[]}"#, 404, "unknown_lease"),
    ];
    for (path, body, status, code) in cases {
        let (answered, problem) = stage.ask("POST", path, body);
        let cut: String = body.chars().take(60).collect();
        assert_eq!((answered, &problem["code"]), (status, &json!(code)), "{path} {cut}: {problem}");
    }
    assert_eq!(stage.held(), [(lease, 10)].into(), "the lease is unchanged");
    assert_eq!(stage.post("/v1/series/ticket/next", "")["ids"], json!(["T-11"]));
    let (status, _) = stage.ask("GET", "/v1/leases?after=x", "");
    assert_eq!(status, 422);
}

/// Checks the gaps before, between and after the returns, on both stores.
#[test]
fn returned_numbers_become_gaps_and_are_not_reissued() {
    for home in [Home::folder(), Home::postgres()] {
        let stage = Stage::on(home);
        let first = stage.post("/v1/series/ticket/lease", r#"{"count":100}"#);
        let id = first["lease"].as_str().unwrap();
        assert!(stage.gaps("ticket").is_empty(), "leased numbers are not gaps");
        assert_eq!(stage.held(), [(id.to_owned(), 100)].into());
        let back = format!("/v1/leases/{id}/return");
        let (status, refused) = stage.ask("POST", &back, r#"{"unused":[{"first":91,"last":5000}]}"#);
        assert_eq!((status, &refused["code"]), (422, &json!("not_of_lease")));
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("positions 91 to 5000") && detail.contains("holds 1 to 100"), "{detail}");
        assert_eq!(stage.held(), [(id.to_owned(), 100)].into(), "the lease is unchanged");
        assert!(stage.gaps("ticket").is_empty());
        let unused = r#"{"unused":[{"first":31,"last":40},{"first":91,"last":100}]}"#;
        assert_eq!(stage.post(&back, unused)["gaps"], 20);
        let (status, again) = stage.ask("POST", &back, unused);
        assert_eq!((status, &again["code"]), (404, &json!("unknown_lease")));
        let expected = (31..=40).chain(91..=100).map(|position| (position, "lease_lost".to_owned()));
        assert_eq!(stage.gaps("ticket"), expected.collect());
        assert_eq!(stage.post("/v1/series/ticket/next", r#"{"count":2}"#)["ids"], json!(["T-101", "T-102"]));
        let second = stage.post("/v1/series/ticket/lease", r#"{"count":10}"#);
        let used = json!({ "count": 10, "used": [second["lease"], "not an id"] }).to_string();
        stage.post("/v1/series/ticket/lease", &used);
        assert_eq!(stage.held().len(), 1, "the lease before was reported as used up");
        assert_eq!(stage.gaps("ticket").len(), 20);
    }
}

#[test]
fn leases_of_an_audited_series_are_recorded() {
    let stage = Stage::on(Home::folder());
    stage.post("/v1/series/audited/lease", r#"{"count":50}"#);
    stage.post("/v1/series/audited/lease", r#"{"count":5,"numbers":true}"#);
    let (_, audit) = stage.ask("GET", "/v1/audit?series=audited", "");
    let recorded: Vec<(&str, u64)> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["last"].as_str().unwrap(), entry["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(recorded, [("A-50", 50), ("A-55", 5)]);
}

/// On PostgreSQL the range of a node outlives the node, and contains the numbers that the client returned.
#[test]
fn a_floor_and_a_move_keep_the_reasons_of_gaps_and_open_leases() {
    let stage = Stage::on(Home::postgres());
    let returned = stage.post("/v1/series/ticket/lease", r#"{"count":10}"#);
    let back = format!("/v1/leases/{}/return", returned["lease"].as_str().unwrap());
    stage.post(&back, r#"{"unused":[{"first":1,"last":5}]}"#);
    stage.post("/v1/series/ticket/lease", r#"{"count":4}"#);
    stage.post("/v1/series/ticket/next", r#"{"count":6}"#);
    let Stage { server, home } = stage;
    server.kill();
    let other = Home::postgres();
    let urls = [&home, &other].map(|home| home.postgres.as_ref().unwrap().url());
    for arguments in [&["floor", "digit", "3"][..], &["move-store", &urls[0], &urls[1]][..]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bates"));
        let command = command.args(arguments).env("BATES_STORE", &urls[0]);
        let done = command.env("BATES_CONFIG", home.path("bates.yaml")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // The client holds 11 to 14 before and after, so they are not lost.
        let lost = "SELECT first, last, reason FROM bates.lost WHERE series = 'ticket' ORDER BY first";
        let (at, expected) = match arguments[0] {
            // A floor affects only its own series.
            "floor" => (&home, "1|5|lease_lost"),
            _ => (&other, "1|5|lease_lost\n6|10|crash_skip\n15|32|crash_skip"),
        };
        assert_eq!(at.query(lost).trim_end(), expected, "{arguments:?}");
    }
    assert_eq!(other.query("SELECT first, last FROM bates.client_lease").trim_end(), "11|14");
}

/// If the lease or the audit record cannot be written, the request fails and the numbers taken for it become gaps.
#[test]
fn numbers_whose_lease_or_audit_record_cannot_be_written_are_burned_and_reported() {
    let stage = Stage::on(Home::postgres());
    for (table, series, path) in [
        ("client_lease", "ticket", "/v1/series/ticket/lease"),
        ("audit", "audited", "/v1/series/audited/next"),
    ] {
        stage.post(&format!("/v1/series/{series}/next"), r#"{"count":1}"#);
        stage.home.query(&format!("ALTER TABLE bates.{table} RENAME TO hidden"));
        let (status, refused) = stage.ask("POST", path, r#"{"count":10}"#);
        assert!(status >= 500, "{status} {refused}");
        stage.home.query(&format!("ALTER TABLE bates.hidden RENAME TO {table}"));
        stage.post(&format!("/v1/series/{series}/next"), r#"{"count":1}"#);
        // The server writes burned numbers in the background.
        while stage.home.query(&format!("SELECT count(*) FROM bates.lost WHERE series = '{series}'")).trim()
            == "0"
        {}
        let gaps = stage.gaps(series);
        assert_eq!(gaps.keys().copied().collect::<Vec<u64>>(), (2..=11).collect::<Vec<u64>>(), "{gaps:?}");
        assert!(gaps.values().all(|reason| reason == "burned"), "{gaps:?}");
    }
}

/// The rules reject positions 0 and 1 of the series; the server still knows when its date changes.
#[test]
fn a_lease_of_dated_numbers_expires_with_the_day_even_if_rules_reject_the_first_positions() {
    let stage = Stage::on(Home::folder());
    let lease = stage.post("/v1/series/stamped/lease", r#"{"count":3}"#);
    let day = Duration::from_hours(25).as_millis();
    assert!(lease["good_for_ms"].as_u64().is_some_and(|time| u128::from(time) <= day), "{lease}");
}

/// The current rules do not tell which positions were numbers at the time of the lease.
#[test]
fn after_a_change_of_the_rules_the_gaps_still_include_every_returned_number() {
    for home in [Home::folder(), Home::postgres()] {
        let stage = Stage::on(home);
        let (status, created) = stage.ask("PUT", "/v1/series/late", r#"{"pattern":"{seq:4}","start":1}"#);
        assert_eq!(status, 201, "{created}");
        let lease = stage.post("/v1/series/late/lease", r#"{"count":20}"#);
        let (status, changed) = stage.ask("PATCH", "/v1/series/late", r#"{"restrict":["7"]}"#);
        assert_eq!(status, 200, "{changed}");
        let path = format!("/v1/leases/{}/return", lease["lease"].as_str().unwrap());
        let returned = stage.post(&path, r#"{"unused":[{"first":1,"last":20}]}"#);
        assert_eq!(returned["gaps"], 20);
        let gaps = stage.gaps("late");
        assert!((1..=20).all(|position| gaps.contains_key(&position)), "{gaps:?}");
        let stage = stage.killed_and_started_again();
        let gaps = stage.gaps("late");
        assert!((1..=20).all(|position| gaps.contains_key(&position)), "also after a restart: {gaps:?}");
    }
}

//! What a caller receives: numbers, streams of answers, reservations, and errors that change nothing.

use serde_json::json;

use super::super::http::{ask, exchange};
use super::{Home, post, send};

const PATH: &str = "/v1/series/document/documents";

fn series(home: &Home) -> String {
    format!(
        "  document: {{ pattern: \"{{project}}-{{seq}}\", promise: ordered, key: \"d:{{project}}\", sink: {} }}\n  \
           bare: {{ pattern: \"B-{{seq}}\", key: b }}\n  \
           invoice: {{ pattern: \"{{date:%Y}}-{{seq}}\", reset: yearly, promise: gapless }}\n",
        home.sink()
    )
}

fn document(project: &str, title: &str) -> String {
    json!({"scope": {"project": project}, "document": {"title": title}}).to_string()
}

#[test]
fn a_document_is_numbered_once_and_its_state_can_be_read() {
    for home in [Home::folder(), Home::postgres()] {
        let server = home.start(&series(&home));
        let keyed = |key, body: &str| send(server.http, PATH, "application/json", Some(key), body);
        let (status, first) = keyed("k", &document("P", "Plan"));
        assert_eq!(status, 202, "{first}");
        let other_spelling = r#"{"document": {"title" : "Plan"}, "scope":{"project":"P"}}"#;
        for body in [document("P", "Plan"), other_spelling.to_owned()] {
            let (status, again) = keyed("k", &body);
            let numbers = [&first, &again].map(|text| text.split("\",").next().map(str::to_owned));
            assert_eq!((status, &numbers[0]), (200, &numbers[1]), "{again}");
        }
        for other in [document("P", "Other"), document("Q", "Plan")] {
            let (status, refused) = keyed("k", &other);
            assert!(status == 422 && refused.contains("key_reused"), "{refused}");
        }
        assert_eq!(server.redis_cli(&["LPOP", "d:P"]), "P-2", "a refused request takes no number");
        assert_eq!(
            post(server.http, PATH, &document("P", "Next")).1["id"],
            "P-3",
            "one order for documents and other numbers"
        );
        assert_eq!(server.redis_cli(&["LPOP", "d:P"]), "P-4");
        for number in ["P-1", "P-3"] {
            while ask(server.http, "GET", &format!("/v1/documents/{number}"), "").1["state"] != "delivered" {}
        }
        assert_eq!(home.delivered(), ["P-1", "P-3"]);
        let counts = ask(server.http, "GET", "/v1/outbox/counts", "").1;
        assert_eq!(counts["document"]["delivered"], 2);
    }
}

#[test]
fn numbers_without_a_document_are_refused_with_a_key_and_none_is_taken() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    let keyed = |path: &str, body: &str| {
        let path = format!("/v1/series/bare/{path}");
        send(server.http, &path, "application/json", Some("order-1"), body)
    };
    for (path, body) in [
        ("next", "{}"),
        ("next", ""),
        ("next?count=2", ""),
        ("next", "no JSON"),
        ("lease", r#"{"count":10}"#),
        ("pool/next", r#"{"count":1}"#),
    ] {
        let (status, refused) = keyed(path, body);
        let problem: serde_json::Value = serde_json::from_str(&refused).unwrap();
        let told = (status, problem["code"].as_str(), problem["may_burn"].as_bool());
        assert_eq!(told, (422, Some("not_repeatable"), Some(false)), "{path}: {refused}");
        assert!(refused.contains("/v1/series/{series}/reservations"), "{refused}");
    }
    assert_eq!(post(server.http, "/v1/series/bare/next", "").1["ids"], json!(["B-1"]), "none was taken");
    // A reservation answers a repeated key with the same number.
    let reserved = [keyed("reservations", ""), keyed("reservations", "")].map(|(_, body)| body);
    assert!(reserved[0].contains(r#""id":"B-"#) && reserved[0] == reserved[1], "{reserved:?}");
    let absent = send(server.http, "/v1/series/absent/next", "application/json", Some("order-1"), "");
    assert_eq!(absent.0, 404);
}

#[test]
fn each_line_of_a_stream_gets_its_own_answer_in_order() {
    for home in [Home::folder(), Home::postgres()] {
        let server = home.start(&series(&home));
        let long = format!("{{\"document\":\"{}\"}}", "x".repeat(2 * 1024 * 1024));
        let lines = [
            document("P", "one"),
            "not json".to_owned(),
            document("P", "two"),
            String::new(),
            long,
            document("..", "three"),
            r#"{"scope":{"project":"P"}}"#.to_owned(),
            document("Q", "four"),
        ];
        let stream = |key| send(server.http, PATH, "application/x-ndjson", Some(key), &lines.join("\n"));
        let (status, answers) = stream("import");
        let answers: Vec<serde_json::Value> =
            answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(status, 200);
        let outcomes: Vec<&str> = answers
            .iter()
            .map(|answer| answer["id"].as_str().or(answer["error"]["code"].as_str()).unwrap())
            .collect();
        assert_eq!(outcomes, ["P-1", "bad_request", "P-2", "too_large", "bad_scope", "bad_body", "Q-1"]);
        let again = stream("import").1;
        assert!(
            again.contains("\"P-1\"") && again.contains("\"P-2\"") && !again.contains("\"P-3\""),
            "{again}"
        );
        let many: Vec<String> = (0..5_000).map(|at| document("M", &at.to_string())).collect();
        let (_, answers) = send(server.http, PATH, "application/x-ndjson", None, &many.join("\n"));
        let numbers: Vec<String> =
            answers.lines().map(|line| line.split('"').nth(3).unwrap().to_owned()).collect();
        let expected: Vec<String> = (1..=5_000).map(|at| format!("M-{at}")).collect();
        assert_eq!(numbers, expected, "in the order of the lines");
    }
}

#[test]
fn a_reservation_not_confirmed_in_time_is_a_voided_gap_and_its_number_is_never_reissued() {
    for home in [Home::folder(), Home::postgres()] {
        let server = home.start(&series(&home));
        let reserve = |body: &str| post(server.http, "/v1/series/invoice/reservations", body).1;
        let confirmed = reserve(r#"{"date":"2025-12-31","seconds":600}"#);
        let late = reserve(r#"{"date":"2025-12-31","seconds":1}"#);
        let voided = reserve(r#"{"date":"2025-12-31"}"#);
        let number = |reservation: &serde_json::Value| reservation["id"].as_str().unwrap().to_owned();
        assert_eq!([number(&confirmed), number(&late), number(&voided)], ["2025-1", "2025-2", "2025-3"]);
        let decide = |reservation: &serde_json::Value, decision: &str| {
            let token = reservation["token"].as_str().unwrap();
            post(server.http, &format!("/v1/reservations/{token}/{decision}"), "")
        };
        assert_eq!(decide(&confirmed, "confirm").1["state"], "confirmed");
        assert_eq!(decide(&voided, "void").1["state"], "voided");
        assert_eq!(decide(&voided, "confirm").1["code"], "wrong_state");
        assert_eq!(decide(&serde_json::json!({"token": "2025-1"}), "void").1["code"], "unknown_document");
        while ask(server.http, "GET", "/v1/documents/2025-2", "").1["state"] != "voided" {}
        assert_eq!(decide(&late, "confirm").0, 409);
        assert_eq!(
            number(&reserve(r#"{"date":"2025-12-31"}"#)),
            "2025-4",
            "a voided number is never reissued"
        );
        assert!(number(&reserve("")).ends_with("-1"), "the current period counts from 1");
        let reconciled = post(server.http, "/v1/reconcile?series=invoice", "").1;
        assert_eq!((&reconciled["gaps"], &reconciled["missing"]), (&json!(1), &json!(2)), "{reconciled}");
        let gaps = ask(server.http, "GET", "/v1/gaps?series=invoice&period=2025", "").1;
        assert_eq!((&gaps["gaps"][0]["first"], &gaps["gaps"][0]["last"]), (&json!(2), &json!(3)));
        assert_eq!(gaps["gaps"][0]["reason"], "voided");
        let alias = ask(server.http, "GET", "/api/v1/ids/gaps?series=invoice&period=2025", "").1;
        assert_eq!(alias, gaps);
    }
}

#[test]
fn bad_input_about_documents_gets_a_clear_error_and_changes_nothing() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    let code = |path: &str, body: &str| post(server.http, path, body).1["code"].as_str().unwrap().to_owned();
    for (path, body, expected) in [
        ("/v1/series/bare/documents", r#"{"document":{}}"#, "no_sink"),
        ("/v1/series/never/documents", r#"{"document":{}}"#, "unknown_series"),
        (PATH, r#"{"scope":{"project":"P"},"document":null}"#, "bad_document"),
        (PATH, r#"{"scope":{"project":"P"}}"#, "bad_body"),
        (PATH, r#"{"scope":{"project":"P"},"document":{},"count":2}"#, "bad_body"),
        (PATH, r#"{"scope":{"project":"P"},"document":{},"key":"k"}"#, "bad_body"),
        (PATH, r#"{"scope":{"project":"P"},"document":{},"date":"31.12.2025"}"#, "bad_body"),
        (PATH, r#"{"scope":{"project":"../"},"document":{}}"#, "bad_scope"),
        (PATH, "[]", "bad_body"),
        (PATH, "{", "bad_request"),
        ("/v1/series/bare/reservations", r#"{"seconds":0}"#, "bad_count"),
        ("/v1/series/bare/reservations", r#"{"seconds":99999999}"#, "bad_count"),
        ("/v1/outbox/P-9/retry", "", "unknown_document"),
        ("/v1/outbox/retry?state=pending", "", "bad_arguments"),
    ] {
        assert_eq!(code(path, body), expected, "{path} {body}");
    }
    for key in ["", &"k".repeat(300), "\u{e9}"] {
        let (status, refused) = send(server.http, PATH, "application/json", Some(key), &document("P", "x"));
        assert!(status == 422 && refused.contains("bad_arguments"), "{key:?}: {refused}");
    }
    assert_eq!(
        code("/v1/series/bare/documents", &format!("{{\"document\":\"{}\"}}", "x".repeat(2_000_000))),
        "too_large"
    );
    assert_eq!(ask(server.http, "GET", "/v1/outbox?state=lost", "").1["code"], "bad_arguments");
    assert_eq!(ask(server.http, "GET", "/v1/outbox", "").1["documents"], json!([]));
    assert_eq!(post(server.http, PATH, &document("P", "first")).1["id"], "P-1", "the errors took no number");
}

#[test]
fn documents_in_the_users_own_table_open_and_close_gaps() {
    let home = Home::postgres();
    home.query(
        "CREATE TABLE letters (number text); INSERT INTO letters VALUES (NULL), ('nonsense'), ('Q-1')",
    );
    let url = home.postgres.as_ref().unwrap().url();
    let series = format!(
        "  letter: {{ pattern: \"{{project}}-{{seq}}\", promise: ordered, key: \"l:{{project}}\", \
         documents: {{ url: \"{url}\", query: \"SELECT number FROM letters\" }} }}\n  other: {{ pattern: \"O-{{seq}}\" }}\n"
    );
    let server = home.start(&series);
    assert_eq!(server.redis_cli(&["LPOP", "l:P", "5"]).lines().count(), 5);
    home.query("INSERT INTO letters VALUES ('P-1'), ('P-2'), ('P-5')");
    let reconciled = post(server.http, "/v1/reconcile", "").1;
    assert_eq!((&reconciled["missing"], &reconciled["strangers"]), (&json!(2), &json!(1)), "{reconciled}");
    let gaps = ask(server.http, "GET", "/v1/gaps?series=letter&project=P", "").1;
    let gap = &gaps["gaps"][0];
    let gap = (&gap["first"], &gap["last"], &gap["reason"]);
    assert_eq!(gap, (&json!(3), &json!(4), &json!("untracked_loss")));
    home.query("INSERT INTO letters VALUES ('P-4'), ('P-3')");
    assert_eq!(post(server.http, "/v1/reconcile", "").1["gaps"], 0, "late documents close the gap");
    home.query("DROP TABLE letters");
    let token =
        post(server.http, "/v1/series/other/reservations", "").1["token"].as_str().unwrap().to_owned();
    post(server.http, &format!("/v1/reservations/{token}/void"), "");
    let failed = post(server.http, "/v1/reconcile", "").1;
    assert!(failed["detail"].as_str().unwrap().starts_with("the documents of series \"letter\""), "{failed}");
    let others = ask(server.http, "GET", "/v1/gaps?series=other", "").1;
    assert_eq!(others["gaps"][0]["reason"], "voided", "other series are still reconciled");
}

#[test]
fn the_answer_to_a_broken_stream_does_not_look_complete() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    let lines: Vec<String> = (0..20).map(|at| document("P", &at.to_string())).collect();
    let body = lines.join("\n") + "\n";
    // The final chunk is invalid, as if the client had gone away.
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\nzz\r\n",
        body.len()
    );
    let (status, _, answer) = exchange(server.http, request.as_bytes());
    let text = String::from_utf8_lossy(&answer);
    assert!(status == 200, "{text}");
    assert!(!text.ends_with("0\r\n\r\n"), "the answer ends with a final chunk: {text}");
}

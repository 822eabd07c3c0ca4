//! Lost answers, and servers that are down or busy: which requests the client repeats, and which it does not.

use std::time::{Duration, Instant};

use bates_client::{Document, Error};
use serde_json::json;

use super::proxy::{Action, Proxy, problem};
use super::{Stage, builder};

#[tokio::test]
async fn a_lost_answer_of_a_unique_series_costs_a_number_and_the_call_succeeds() {
    let stage = Stage::new();
    for series in ["ticket", "queue"] {
        let proxy = Proxy::start(stage.server.http, [Action::Lose]);
        let number = proxy.client().series(series).next().await.unwrap();
        assert_eq!(&number[1..], "-2", "the first is burned");
        let (next, describe) = (format!("POST /v1/series/{series}/next"), format!("GET /v1/series/{series}"));
        assert_eq!(proxy.seen(), [&*next, &describe, &next]);
    }
}

#[tokio::test]
async fn a_lost_answer_of_a_gapless_series_is_an_error_and_takes_no_second_number() {
    let stage = Stage::new();
    for count in [1, 3] {
        let proxy = Proxy::start(stage.server.http, [Action::Lose]);
        let before = stage.client().series("bill").peek().await.unwrap().last.unwrap_or_default();
        let error = proxy.client().series("bill").take(count).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { attempts: 1, .. }), "{error:?}");
        assert!(error.may_burn() && error.is_retryable(), "{error:?}");
        assert!(error.to_string().contains("a number may be burned"), "{error}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{}", proxy.port)), "{error}");
        assert_eq!(proxy.seen(), ["POST /v1/series/bill/next", "GET /v1/series/bill"]);
        let after = stage.client().series("bill").peek().await.unwrap().last.unwrap();
        assert_eq!(after - before, count as u64);
    }
}

#[tokio::test]
async fn the_client_repeats_no_request_before_it_knows_the_promise_of_the_series() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [Action::Lose, Action::Drop, Action::Drop, Action::Pass]);
    assert_eq!(proxy.client().series("ticket").next().await.unwrap(), "T-2");
    let methods: Vec<String> = proxy.seen().iter().map(|seen| seen[..4].to_owned()).collect();
    assert_eq!(methods, ["POST", "GET ", "GET ", "GET ", "POST"]);
    let proxy = Proxy::start(stage.server.http, [Action::Lose, Action::Drop, Action::Drop]);
    let client = builder(proxy.port).attempts(3).build().unwrap();
    let error = client.series("ticket").next().await.unwrap_err();
    assert!(error.may_burn() && matches!(error, Error::NoAnswer { attempts: 3, .. }), "{error:?}");
    assert_eq!(proxy.seen().iter().filter(|seen| seen.starts_with("POST")).count(), 1);
}

#[tokio::test]
async fn a_refused_connection_burns_nothing_and_is_tried_as_often_as_configured() {
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = builder(closed_port).attempts(3).build().unwrap();
    let error = client.series("bill").next().await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { attempts: 3, may_burn: false, .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains(&format!("127.0.0.1:{closed_port}")) && message.contains("Connection refused"),
        "{message}"
    );
}

#[tokio::test]
async fn a_request_that_times_out_may_have_burned_a_number() {
    let stage = Stage::new();
    let (answered, _was_answered) = std::sync::mpsc::channel();
    let (_go_on, may_go_on) = std::sync::mpsc::channel();
    let proxy = Proxy::start(stage.server.http, [Action::Hold(answered, may_go_on)]);
    let client = builder(proxy.port).answer_timeout(Duration::from_millis(1)).attempts(1).build().unwrap();
    let error = client.series("bill").next().await.unwrap_err();
    assert!(error.may_burn() && matches!(error, Error::NoAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn a_request_for_gapless_numbers_is_repeated_only_if_none_was_burned() {
    let stage = Stage::new();
    let proxy =
        Proxy::start(stage.server.http, [problem(503, "busy", false, 0), problem(429, "busy", false, 0)]);
    assert_eq!(proxy.client().series("bill").next().await.unwrap(), "B-1");
    assert_eq!(proxy.seen(), ["POST /v1/series/bill/next"; 3]);
    let proxy = Proxy::start(stage.server.http, [problem(503, "store_unavailable", true, 0)]);
    let error = proxy.client().series("bill").next().await.unwrap_err();
    assert_eq!((error.code(), error.may_burn()), (Some("store_unavailable"), true));
    assert_eq!(proxy.seen().len(), 2);
    let proxy = Proxy::start(stage.server.http, [problem(503, "store_unavailable", true, 0)]);
    assert_eq!(proxy.client().series("ticket").next().await.unwrap(), "T-1");
}

#[tokio::test]
async fn the_client_waits_as_long_as_a_busy_server_asks() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [problem(503, "busy", false, 1)]);
    let start = Instant::now();
    assert_eq!(proxy.client().series("ticket").next().await.unwrap(), "T-1");
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_client_does_not_wait_past_its_deadline_for_a_busy_server() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [problem(429, "too_many_scopes", false, 3600)]);
    let error = proxy.client().series("ticket").next().await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code, status: 429, .. } if **code == *"too_many_scopes"),
        "{error:?}"
    );
    assert_eq!(proxy.seen().len(), 1);
}

#[tokio::test]
async fn a_document_whose_answers_get_lost_still_has_one_number() {
    let stage = Stage::new();
    let proxy = Proxy::start(
        stage.server.http,
        [Action::Lose, Action::Lose, problem(503, "store_unavailable", true, 0)],
    );
    let bills = proxy.client().series("bill");
    assert_eq!(bills.assign(&Document::new(&json!({"a": 1})).unwrap()).await.unwrap().id, "B-1");
    assert_eq!(proxy.seen().len(), 4);
    let proxy = Proxy::start(stage.server.http, [Action::Lose, Action::Lose]);
    let bills = proxy.client().series("bill");
    assert_eq!(bills.reserve(Duration::from_mins(1)).await.unwrap().id, "B-2");
    let proxy = Proxy::start(stage.server.http, [Action::Lose]);
    let documents: Vec<Document> = (0..10).map(|at| Document::new(&at).unwrap()).collect();
    let answers = proxy.client().series("bill").assign_all(&documents).await.unwrap();
    let mut numbers: Vec<String> = answers.into_iter().map(|one| one.unwrap().id).collect();
    numbers.sort_by_key(|number| (number.len(), number.clone()));
    let expected: Vec<String> = (3..13).map(|at| format!("B-{at}")).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn a_repeated_decision_about_a_reservation_takes_effect_once() {
    let stage = Stage::new();
    let bills = stage.client().series("bill");
    for (decision, state) in [("confirm", "confirmed"), ("void", "voided")] {
        let token = bills.reserve(Duration::from_mins(1)).await.unwrap().token;
        let proxy = Proxy::start(stage.server.http, [Action::Lose, Action::Lose]);
        let client = proxy.client();
        let document =
            if decision == "void" { client.void(&token).await } else { client.confirm(&token).await };
        assert_eq!(document.unwrap().state, state);
        assert_eq!(proxy.seen(), [&*format!("POST /v1/reservations/{token}/{decision}"); 3]);
    }
    let proxy = Proxy::start(stage.server.http, [Action::Lose]);
    assert_eq!(proxy.client().reconcile().await.unwrap().missing, 1);
}

#[tokio::test]
async fn a_call_that_fails_halfway_returns_the_numbers_taken_so_far() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [Action::Pass, problem(422, "bad_count", false, 0)]);
    let taken = proxy.client().series("ticket").take(100_002).await.unwrap();
    assert_eq!((taken.len(), &*taken[99_999]), (100_000, "T-100000"));
}

#[tokio::test]
async fn an_answer_that_is_not_from_bates_is_an_unexpected_error() {
    let stage = Stage::new();
    let answer = |head: &str, body: &str| {
        Action::Answer(format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    };
    for (action, status, may_burn) in [
        (answer("200 OK", "<html>"), 200, true),
        (answer("200 OK", "{\"ids\":[]}"), 200, false),
        (answer("301 Moved\r\nlocation: http://127.0.0.1:1/", ""), 301, false),
        (answer("404 Not Found", "nothing"), 404, false),
        (answer("502 Bad Gateway", "<html>"), 502, true),
        (answer("200 OK", &" ".repeat(65 * 1024 * 1024)), 200, true),
    ] {
        let proxy = Proxy::start(stage.server.http, [action]);
        let client = builder(proxy.port).attempts(1).build().unwrap();
        let error = client.series("ticket").next().await.unwrap_err();
        let Error::Unexpected { status: received, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*received, error.may_burn(), proxy.seen().len()), (status, may_burn, 1), "{error}");
    }
    let proxy = Proxy::start(stage.server.http, [answer("502 Bad Gateway", "<html>")]);
    assert_eq!(
        proxy.client().series("ticket").next().await.unwrap(),
        "T-1",
        "the client repeats a request that a gateway could not forward"
    );
}

//! Answers that get lost, servers that are away or busy: what is asked again, and what is not.

use std::time::{Duration, Instant};

use bates_client::{Document, Error};
use serde_json::json;

use super::proxy::{Act, Proxy, problem};
use super::{Stage, builder};

#[tokio::test]
async fn a_lost_answer_costs_a_unique_series_one_number_and_no_call() {
    let stage = Stage::new();
    for series in ["ticket", "queue"] {
        let proxy = Proxy::start(stage.server.http, [Act::Lose]);
        let number = proxy.client().series(series).next().await.unwrap();
        assert_eq!(&number[1..], "-2", "the first is burned");
        let (next, look) = (format!("POST /v1/series/{series}/next"), format!("GET /v1/series/{series}"));
        assert_eq!(proxy.seen(), [&*next, &look, &next]);
    }
}

#[tokio::test]
async fn a_lost_answer_of_a_gapless_series_is_told_and_no_second_number_is_taken() {
    let stage = Stage::new();
    for asked in [1, 3] {
        let proxy = Proxy::start(stage.server.http, [Act::Lose]);
        let before = stage.client().series("bill").peek().await.unwrap().last.unwrap_or_default();
        let error = proxy.client().series("bill").take(asked).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { attempts: 1, .. }), "{error:?}");
        assert!(error.may_burn() && error.is_retryable(), "{error:?}");
        assert!(error.to_string().contains("a number may be burned"), "{error}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{}", proxy.port)), "{error}");
        assert_eq!(proxy.seen(), ["POST /v1/series/bill/next", "GET /v1/series/bill"]);
        let after = stage.client().series("bill").peek().await.unwrap().last.unwrap();
        assert_eq!(after - before, asked as u64);
    }
}

#[tokio::test]
async fn without_knowing_the_promise_nothing_is_asked_again() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [Act::Lose, Act::Drop, Act::Drop, Act::Pass]);
    assert_eq!(proxy.client().series("ticket").next().await.unwrap(), "T-2");
    let methods: Vec<String> = proxy.seen().iter().map(|seen| seen[..4].to_owned()).collect();
    assert_eq!(methods, ["POST", "GET ", "GET ", "GET ", "POST"]);
    let proxy = Proxy::start(stage.server.http, [Act::Lose, Act::Drop, Act::Drop]);
    let client = builder(proxy.port).attempts(3).build().unwrap();
    let error = client.series("ticket").next().await.unwrap_err();
    assert!(error.may_burn() && matches!(error, Error::NoAnswer { attempts: 3, .. }), "{error:?}");
    assert_eq!(proxy.seen().iter().filter(|seen| seen.starts_with("POST")).count(), 1);
}

#[tokio::test]
async fn what_connected_to_nobody_has_burned_nothing_and_is_tried_as_often_as_was_said() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = builder(nobody).attempts(3).build().unwrap();
    let error = client.series("bill").next().await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { attempts: 3, may_burn: false, .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains(&format!("127.0.0.1:{nobody}")) && said.contains("Connection refused"), "{said}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_may_have_taken_a_number() {
    let stage = Stage::new();
    let (told, _held) = std::sync::mpsc::channel();
    let (_go_on, waits) = std::sync::mpsc::channel();
    let proxy = Proxy::start(stage.server.http, [Act::Hold(told, waits)]);
    let client = builder(proxy.port).answer_timeout(Duration::from_millis(1)).attempts(1).build().unwrap();
    let error = client.series("bill").next().await.unwrap_err();
    assert!(error.may_burn() && matches!(error, Error::NoAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn numbers_of_a_gapless_series_are_asked_for_again_only_if_none_was_burned() {
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
async fn a_busy_server_is_left_alone_for_as_long_as_it_asks() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [problem(503, "busy", false, 1)]);
    let begun = Instant::now();
    assert_eq!(proxy.client().series("ticket").next().await.unwrap(), "T-1");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_asks_for_more_time_than_there_is_is_not_waited_for() {
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
async fn a_document_whose_answers_get_lost_has_one_number() {
    let stage = Stage::new();
    let proxy =
        Proxy::start(stage.server.http, [Act::Lose, Act::Lose, problem(503, "store_unavailable", true, 0)]);
    let bills = proxy.client().series("bill");
    assert_eq!(bills.assign(&Document::new(&json!({"a": 1})).unwrap()).await.unwrap().id, "B-1");
    assert_eq!(proxy.seen().len(), 4);
    let proxy = Proxy::start(stage.server.http, [Act::Lose, Act::Lose]);
    let bills = proxy.client().series("bill");
    assert_eq!(bills.reserve(Duration::from_mins(1)).await.unwrap().id, "B-2");
    let proxy = Proxy::start(stage.server.http, [Act::Lose]);
    let documents: Vec<Document> = (0..10).map(|at| Document::new(&at).unwrap()).collect();
    let answers = proxy.client().series("bill").assign_all(&documents).await.unwrap();
    let mut numbers: Vec<String> = answers.into_iter().map(|one| one.unwrap().id).collect();
    numbers.sort_by_key(|number| (number.len(), number.clone()));
    let expected: Vec<String> = (3..13).map(|at| format!("B-{at}")).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn what_was_decided_and_not_told_is_decided_once() {
    let stage = Stage::new();
    let bills = stage.client().series("bill");
    for (decision, state) in [("confirm", "confirmed"), ("void", "voided")] {
        let token = bills.reserve(Duration::from_mins(1)).await.unwrap().token;
        let proxy = Proxy::start(stage.server.http, [Act::Lose, Act::Lose]);
        let client = proxy.client();
        let known = if decision == "void" { client.void(&token).await } else { client.confirm(&token).await };
        assert_eq!(known.unwrap().state, state);
        assert_eq!(proxy.seen(), [&*format!("POST /v1/reservations/{token}/{decision}"); 3]);
    }
    let proxy = Proxy::start(stage.server.http, [Act::Lose]);
    assert_eq!(proxy.client().reconcile().await.unwrap().missing, 1);
}

#[tokio::test]
async fn numbers_that_were_taken_before_a_call_failed_are_not_lost() {
    let stage = Stage::new();
    let proxy = Proxy::start(stage.server.http, [Act::Pass, problem(422, "bad_count", false, 0)]);
    let taken = proxy.client().series("ticket").take(100_002).await.unwrap();
    assert_eq!((taken.len(), &*taken[99_999]), (100_000, "T-100000"));
}

#[tokio::test]
async fn who_is_not_bates_is_told_apart() {
    let stage = Stage::new();
    let say = |head: &str, body: &str| {
        Act::Say(format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    };
    for (answer, status, may_burn) in [
        (say("200 OK", "<html>"), 200, true),
        (say("200 OK", "{\"ids\":[]}"), 200, false),
        (say("301 Moved\r\nlocation: http://127.0.0.1:1/", ""), 301, false),
        (say("404 Not Found", "nothing"), 404, false),
        (say("502 Bad Gateway", "<html>"), 502, true),
        (say("200 OK", &" ".repeat(65 * 1024 * 1024)), 200, true),
    ] {
        let proxy = Proxy::start(stage.server.http, [answer]);
        let client = builder(proxy.port).attempts(1).build().unwrap();
        let error = client.series("ticket").next().await.unwrap_err();
        let Error::Unexpected { status: told, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*told, error.may_burn(), proxy.seen().len()), (status, may_burn, 1), "{error}");
    }
    let proxy = Proxy::start(stage.server.http, [say("502 Bad Gateway", "<html>")]);
    assert_eq!(
        proxy.client().series("ticket").next().await.unwrap(),
        "T-1",
        "a proxy without its server passes"
    );
}

//! Webhooks, against a server that fails, hangs, redirects and refuses.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bates_core::{Delivery, DeliveryError, DeliveryOutcomes, Sink};
use bates_testkit::programs;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::receiver::Receiver;
use super::{delivery, expected, is_refused, is_unanswered, is_unavailable, opened};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEXT_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn webhook(url: &str, more: &Value) -> Box<dyn Sink> {
    let mut described = json!({"url": url, "secret": SECRET, "allow_private": true});
    described.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    opened(&json!({"webhook": described})).unwrap()
}

fn wishing(wishes: &[Value]) -> Vec<Delivery> {
    let wish = |(at, wish): (usize, &Value)| delivery(at as u64, &json!({"do": wish}).to_string());
    wishes.iter().enumerate().map(wish).collect()
}

/// As a receiver would, with a program that shares nothing with ours.
fn hmac_by_openssl(secret: &str, signed: &[u8]) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let key = key.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let openssl = programs::find("openssl").expect("openssl; run `cargo xtask test`, which installs it");
    let mut openssl = Command::new(openssl)
        .args(["dgst", "-sha256", "-mac", "HMAC", "-macopt", &format!("hexkey:{key}"), "-binary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    openssl.stdin.take().unwrap().write_all(signed).unwrap();
    STANDARD.encode(openssl.wait_with_output().unwrap().stdout)
}

#[tokio::test]
async fn a_receiver_can_verify_what_it_gets_with_every_secret_that_is_valid() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"secret": format!("{SECRET} {NEXT_SECRET}")}));
    let sent = delivery(7, r#"{"title":"é","amount":1.50}"#);
    assert_eq!(sink.deliver(std::slice::from_ref(&sent)).await, [Ok(())]);
    let (headers, body) = receiver.seen.requests.lock().pop().unwrap();
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("webhook-id"), sent.document_id.to_string());
    assert_eq!(header("content-type"), "application/json");
    let timestamp = header("webhook-timestamp");
    let age = jiff::Timestamp::now().as_second() - timestamp.parse::<i64>().unwrap();
    assert!((0..60).contains(&age), "{age}");
    let mut signed = format!("{}.{timestamp}.", sent.document_id).into_bytes();
    signed.extend_from_slice(&body);
    let signatures = [SECRET, NEXT_SECRET].map(|secret| format!("v1,{}", hmac_by_openssl(secret, &signed)));
    assert_eq!(header("webhook-signature"), signatures.join(" "));

    let event: Value = serde_json::from_slice(&body).unwrap();
    let mut data = expected(&sent);
    data["attempt"] = json!(1);
    let whole = json!({"type": "document.numbered", "timestamp": "2026-11-15T10:00:00Z", "data": data});
    assert_eq!(event, whole);
    assert!(body.ends_with(r#""document":{"title":"é","amount":1.50}}}"#.as_bytes()), "not as it came");
}

#[tokio::test]
async fn each_document_is_answered_by_its_own_status() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({}));
    let wishes = [200, 201, 400, 404, 410, 413, 408, 425, 429, 500, 502, 503, 504, 301, 302, 307, 308, 204];
    let answers = sink.deliver(&wishing(&wishes.map(Value::from))).await;
    for (status, answer) in wishes.iter().zip(&answers) {
        match status {
            200..300 => assert_eq!(answer, &Ok(()), "{status}"),
            400 | 404 | 410 | 413 => assert!(is_refused(answer), "{status} {answer:?}"),
            502 | 504 => assert!(is_unanswered(answer), "what is behind it may have it: {status} {answer:?}"),
            _ => assert!(is_unavailable(answer), "{status} {answer:?}"),
        }
    }
    let reason = answers[2].as_ref().unwrap_err().to_string();
    assert_eq!(reason, "refused: HTTP 400 Bad Request: because of this");
    assert_eq!(receiver.seen.elsewhere.load(Ordering::SeqCst), 0, "a redirect was followed");
}

#[tokio::test]
async fn one_that_hangs_costs_its_timeout_and_holds_up_no_other() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"timeout_ms": 500, "concurrency": 2}));
    let hang = json!("hang");
    let started = Instant::now();
    let answers = sink.deliver(&wishing(&[hang, json!(200), json!(200), json!(200)])).await;
    assert_eq!(answers[0], Err(DeliveryError::Unanswered("the receiver did not answer in time".into())));
    assert_eq!(answers[1..], [Ok(()), Ok(()), Ok(())]);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn what_is_answered_is_told_while_another_one_hangs() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"timeout_ms": 25_000}));
    let documents = wishing(&[json!(200), json!("hang"), json!(400), json!(200)]);
    let outcomes = DeliveryOutcomes::unknown(documents.len());
    let mut delivering = sink.deliver_each(&documents, &outcomes);
    // Until all but the one that hangs have been answered.
    while receiver.seen.requests.lock().len() < 4 || outcomes.reported_count() < 3 {
        assert!((&mut delivering).now_or_never().is_none(), "one of them hangs");
        tokio::task::yield_now().await;
    }
    drop(delivering);
    let answers = outcomes.into_results("cut off");
    assert_eq!(answers[1], Err(DeliveryError::Unanswered("cut off".into())));
    assert!(answers[0].is_ok() && is_refused(&answers[2]) && answers[3].is_ok(), "{answers:?}");
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"timeout_ms": 25_000}));
    assert_eq!(sink.deliver(&wishing(&[json!("talk")])).await, [Ok(())]);
}

#[tokio::test]
async fn as_many_requests_are_under_way_as_described_and_no_more() {
    let receiver = Receiver::start(3).await;
    let sink = webhook(&receiver.url(), &json!({"concurrency": 3}));
    // With fewer than three at once, those that wait for each other would never be answered.
    let answers = sink.deliver(&wishing(&vec![json!("together"); 12])).await;
    assert_eq!(answers, vec![Ok(()); 12]);
    // A fourth that hangs begins only after one of three is over.
    let sink = webhook(&receiver.url(), &json!({"concurrency": 3, "timeout_ms": 300}));
    let started = Instant::now();
    assert!(sink.deliver(&wishing(&vec![json!("hang"); 4])).await.iter().all(is_unanswered));
    assert!(started.elapsed() >= Duration::from_millis(600));
    assert_eq!(sink.batch_max(), 3);
}

#[tokio::test]
async fn a_name_of_a_private_address_is_not_connected_to() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    let sink = webhook(&url, &json!({"allow_private": false}));
    let answers = sink.deliver(&wishing(&[json!(200)])).await;
    let reason = answers[0].as_ref().unwrap_err().to_string();
    assert!(reason.contains("resolves to a private address"), "{reason}");
    assert!(listener.accept().now_or_never().is_none(), "it was connected to");

    // The same with leave: it gets as far as the handshake.
    let sink = webhook(&url, &json!({"timeout_ms": 10_000}));
    let documents = wishing(&[json!(200)]);
    let (answers, connection) =
        tokio::join!(sink.deliver(&documents), async { listener.accept().await.map(drop) });
    assert!(is_unavailable(&answers[0]) && connection.is_ok());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_its_token_stays_hidden() {
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let sink = webhook(&format!("http://127.0.0.1:{free}/hunter2?token=hunter2"), &json!({}));
    let answers = sink.deliver(&wishing(&[json!(200), json!(200)])).await;
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    assert!(!format!("{answers:?}").contains("hunter2"), "{answers:?}");
    assert_eq!(sink.describe(), format!("webhook http://127.0.0.1:{free}"));
}

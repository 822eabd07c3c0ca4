//! Webhooks to a server that fails, hangs, redirects or refuses.

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
use super::{delivery, expected, is_refused, is_unanswered, is_unavailable, open_sink};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEXT_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn webhook(url: &str, more: &Value) -> Box<dyn Sink> {
    let mut settings = json!({"url": url, "secret": SECRET, "allow_private": true});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    open_sink(&json!({"webhook": settings})).unwrap()
}

/// One delivery per instruction; the receiver does what its document says.
fn deliveries(instructions: &[Value]) -> Vec<Delivery> {
    let to_delivery =
        |(at, instruction): (usize, &Value)| delivery(at as u64, &json!({"do": instruction}).to_string());
    instructions.iter().enumerate().map(to_delivery).collect()
}

/// Signs with an independent program, as a receiver might.
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
async fn a_receiver_can_verify_a_request_with_each_valid_secret() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"secret": format!("{SECRET} {NEXT_SECRET}")}));
    let sent = delivery(7, r#"{"title":"é","amount":1.50}"#);
    assert_eq!(sink.deliver(std::slice::from_ref(&sent)).await, [Ok(())]);
    let (headers, body) = receiver.state.requests.lock().pop().unwrap();
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
    assert!(
        body.ends_with(r#""document":{"title":"é","amount":1.50}}}"#.as_bytes()),
        "the document was changed"
    );
}

#[tokio::test]
async fn each_document_gets_the_outcome_of_its_own_status() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({}));
    let statuses = [200, 201, 400, 404, 410, 413, 408, 425, 429, 500, 502, 503, 504, 301, 302, 307, 308, 204];
    let answers = sink.deliver(&deliveries(&statuses.map(Value::from))).await;
    for (status, answer) in statuses.iter().zip(&answers) {
        match status {
            200..300 => assert_eq!(answer, &Ok(()), "{status}"),
            400 | 404 | 410 | 413 => assert!(is_refused(answer), "{status} {answer:?}"),
            502 | 504 => assert!(
                is_unanswered(answer),
                "the server behind the gateway may have accepted it: {status} {answer:?}"
            ),
            _ => assert!(is_unavailable(answer), "{status} {answer:?}"),
        }
    }
    let reason = answers[2].as_ref().unwrap_err().to_string();
    assert_eq!(reason, "refused: HTTP 400 Bad Request: because of this");
    assert_eq!(receiver.state.redirects_followed.load(Ordering::SeqCst), 0, "a redirect was followed");
}

#[tokio::test]
async fn a_hanging_request_times_out_and_delays_no_other() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"timeout_ms": 500, "concurrency": 2}));
    let hang = json!("hang");
    let started = Instant::now();
    let answers = sink.deliver(&deliveries(&[hang, json!(200), json!(200), json!(200)])).await;
    assert_eq!(answers[0], Err(DeliveryError::Unanswered("the receiver did not answer in time".into())));
    assert_eq!(answers[1..], [Ok(()), Ok(()), Ok(())]);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn outcomes_are_reported_while_another_request_hangs() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"timeout_ms": 25_000}));
    let documents = deliveries(&[json!(200), json!("hang"), json!(400), json!(200)]);
    let outcomes = DeliveryOutcomes::unknown(documents.len());
    let mut delivering = sink.deliver_each(&documents, &outcomes);
    // Waits until all but the hanging request are answered.
    while receiver.state.requests.lock().len() < 4 || outcomes.reported_count() < 3 {
        assert!((&mut delivering).now_or_never().is_none(), "one request hangs");
        tokio::task::yield_now().await;
    }
    drop(delivering);
    let answers = outcomes.into_results("cut off");
    assert_eq!(answers[1], Err(DeliveryError::Unanswered("cut off".into())));
    assert!(answers[0].is_ok() && is_refused(&answers[2]) && answers[3].is_ok(), "{answers:?}");
}

#[tokio::test]
async fn an_endless_response_is_not_read_to_its_end() {
    let receiver = Receiver::start(1).await;
    let sink = webhook(&receiver.url(), &json!({"timeout_ms": 25_000}));
    assert_eq!(sink.deliver(&deliveries(&[json!("talk")])).await, [Ok(())]);
}

#[tokio::test]
async fn at_most_concurrency_requests_run_at_once() {
    let receiver = Receiver::start(3).await;
    let sink = webhook(&receiver.url(), &json!({"concurrency": 3}));
    // The receiver answers only when three requests have arrived.
    let answers = sink.deliver(&deliveries(&vec![json!("together"); 12])).await;
    assert_eq!(answers, vec![Ok(()); 12]);
    // The fourth request begins only after one of the first three has timed out.
    let sink = webhook(&receiver.url(), &json!({"concurrency": 3, "timeout_ms": 300}));
    let started = Instant::now();
    assert!(sink.deliver(&deliveries(&vec![json!("hang"); 4])).await.iter().all(is_unanswered));
    assert!(started.elapsed() >= Duration::from_millis(600));
    assert_eq!(sink.batch_max(), 3);
}

#[tokio::test]
async fn a_host_that_resolves_to_a_private_address_is_not_contacted() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    let sink = webhook(&url, &json!({"allow_private": false}));
    let answers = sink.deliver(&deliveries(&[json!(200)])).await;
    let reason = answers[0].as_ref().unwrap_err().to_string();
    assert!(reason.contains("resolves to a private address"), "{reason}");
    assert!(listener.accept().now_or_never().is_none(), "the sink connected");

    // If private addresses are allowed, the sink gets as far as the handshake.
    let sink = webhook(&url, &json!({"timeout_ms": 10_000}));
    let documents = deliveries(&[json!(200)]);
    let (answers, connection) =
        tokio::join!(sink.deliver(&documents), async { listener.accept().await.map(drop) });
    assert!(is_unavailable(&answers[0]) && connection.is_ok());
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable_and_its_token_stays_hidden() {
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let sink = webhook(&format!("http://127.0.0.1:{free}/hunter2?token=hunter2"), &json!({}));
    let answers = sink.deliver(&deliveries(&[json!(200), json!(200)])).await;
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    assert!(!format!("{answers:?}").contains("hunter2"), "{answers:?}");
    assert_eq!(sink.describe(), format!("webhook http://127.0.0.1:{free}"));
}

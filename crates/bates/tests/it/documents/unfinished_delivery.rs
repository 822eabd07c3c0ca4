//! Deliveries in progress and deliveries that were cut off, with a server process, both stores and a receiver that
//! hangs.

use std::process::Command;

use serde_json::{Value, json};

use super::super::http::ask;
use super::receiver::{Behaviour, Receiver};
use super::{Home, post};

/// A series that delivers to this receiver with this timeout.
fn series(receiver: &Receiver, timeout_ms: u64) -> String {
    format!(
        "  letter: {{ pattern: \"L-{{seq}}\", sink: {{ webhook: {{ url: \"http://127.0.0.1:{}/in\", secret: \
         whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, allow_private: true, timeout_ms: {timeout_ms} }} }} }}\n",
        receiver.port
    )
}

fn number(port: u16, title: &str) -> String {
    let body = json!({"document": {"title": title}}).to_string();
    let (status, answer) = post(port, "/v1/series/letter/documents", &body);
    assert_eq!(status, 202, "{answer}");
    answer["id"].as_str().unwrap().to_owned()
}

fn document(port: u16, number: &str) -> Value {
    ask(port, "GET", &format!("/v1/documents/{number}"), "").1
}

#[test]
fn a_document_in_delivery_cannot_be_abandoned_and_its_number_is_uncertain_if_the_outcome_is_unknown() {
    for home in [Home::folder(), Home::postgres()] {
        let receiver = Receiver::start(Behaviour::Hangs);
        let server = home.start(&series(&receiver, 25_000));
        let letter = number(server.http, "hang");
        while receiver.requests() == 0 {}
        let abandon = format!("/v1/outbox/{letter}/abandon");
        let (status, refused) = post(server.http, &abandon, "");
        assert_eq!((status, &refused["code"]), (409, &json!("delivery_under_way")), "{refused}");
        let due = document(server.http, &letter)["due"].as_str().unwrap().to_owned();
        assert!(refused["detail"].as_str().unwrap().contains(&due), "the error says until when: {refused}");
        assert_eq!(
            post(server.http, "/v1/outbox/abandon", "").1,
            json!({"count": 0}),
            "nor can it be abandoned with all others"
        );
        let url = format!("http://127.0.0.1:{}", server.http);
        let command = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["outbox", "abandon", &letter, "--url", &url])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&command.stderr).into_owned();
        assert!(command.status.code() == Some(1) && stderr.contains("is being delivered"), "{stderr}");
        assert_eq!(document(server.http, &letter)["state"], "pending");
        server.kill();

        // The outcome of the attempt is unknown, and without a sink no other attempt begins.
        let server = home.start("  letter: { pattern: \"L-{seq}\" }\n");
        if home.postgres.is_some() {
            // On PostgreSQL another node may still be delivering it, so the test ends its claim.
            home.query("UPDATE bates.document SET due_at = now()");
        }
        let (status, abandoned) = post(server.http, &abandon, "");
        assert_eq!(
            (status, &abandoned["state"], &abandoned["in_doubt"]),
            (200, &json!("abandoned"), &json!(true))
        );
        post(server.http, "/v1/reconcile", "");
        let gaps = ask(server.http, "GET", "/v1/gaps?series=letter", "").1;
        let gap = &gaps["gaps"][0];
        assert_eq!((&gap["reason"], &gap["uncertain"]), (&json!("delivery_unknown"), &json!(true)), "{gaps}");
    }
}

/// One slow request in a batch does not cause a second delivery of the others.
#[test]
fn only_the_document_that_hangs_is_delivered_again_from_a_batch() {
    let (home, receiver) = (Home::folder(), Receiver::start(Behaviour::HangsOnPoison));
    let server = home.start_with(&series(&receiver, TIMEOUT_MS), &[("BATES_OUTBOX_TRIES", "2")]);
    let poison = number(server.http, "poison");
    let good: Vec<String> = (0..40).map(|_| number(server.http, "good")).collect();
    while document(server.http, &poison)["state"] != "dead" {}
    let mut accepted = receiver.accepted();
    accepted.sort();
    let mut expected = good.clone();
    expected.sort();
    assert_eq!(accepted, expected, "each document once");
    for letter in good {
        assert_eq!(document(server.http, &letter)["state"], "delivered");
    }
    let dead = document(server.http, &poison);
    assert_eq!((&dead["tries"], &dead["in_doubt"]), (&json!(2), &json!(true)), "{dead}");
    assert_eq!(receiver.requests(), 42);
    drop(server);
    let refused = home.try_start_with(&series(&receiver, 60_000), &[]).err().unwrap();
    assert!(refused.contains("60000 is out of range: expected 1 to 25000"), "{refused}");
}

const TIMEOUT_MS: u64 = 2_000;

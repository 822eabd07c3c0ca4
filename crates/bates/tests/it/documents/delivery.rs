//! A sink that is down or slow, or refuses a document. Every document ends delivered or dead, and other
//! sinks are unaffected.

use serde_json::json;

use super::super::http::{ask, exchange};
use super::receiver::{Behaviour, Receiver};
use super::{Home, post};

fn series(one: &Receiver, other: &Receiver) -> String {
    let definition = |name: &str, receiver: &Receiver| {
        format!(
            "  {name}: {{ pattern: \"{}-{{seq}}\", sink: {{ webhook: {{ url: \"http://127.0.0.1:{}/in\", secret: \
             whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, allow_private: true, timeout_ms: 300 }} }} }}\n",
            name.to_uppercase(),
            receiver.port
        )
    };
    definition("one", one) + &definition("other", other)
}

fn number(port: u16, series: &str, title: &str) -> String {
    let (status, answer) = post(
        port,
        &format!("/v1/series/{series}/documents"),
        &json!({"document": {"title": title}}).to_string(),
    );
    assert_eq!(status, 202, "{answer}");
    answer["id"].as_str().unwrap().to_owned()
}

fn state(port: u16, number: &str) -> String {
    ask(port, "GET", &format!("/v1/documents/{number}"), "").1["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_refused_document_is_dead_after_its_attempts_and_delays_no_other() {
    for home in [Home::folder(), Home::postgres()] {
        let (one, other) = (Receiver::start(Behaviour::RefusesPoison), Receiver::start(Behaviour::Accepts));
        let server = home.start_with(&series(&one, &other), &[("BATES_OUTBOX_TRIES", "2")]);
        let bad = number(server.http, "one", "poison");
        let good: Vec<String> = (0..20).map(|_| number(server.http, "one", "good")).collect();
        for number in &good {
            while state(server.http, number) != "delivered" {}
        }
        while state(server.http, &bad) != "dead" {}
        let dead = ask(server.http, "GET", "/v1/outbox?state=dead", "").1;
        let dead = &dead["documents"][0];
        assert_eq!((&dead["id"], &dead["tries"]), (&json!(bad), &json!(2)));
        assert!(dead["last_error"].as_str().unwrap().contains("400"), "{dead}");
        let metrics =
            exchange(server.http, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").2;
        let metrics = String::from_utf8(metrics).unwrap();
        assert!(metrics.contains("bates_documents{series=\"one\",state=\"dead\"} 1\n"), "{metrics}");
        post(server.http, "/v1/reconcile", "");
        let gaps = ask(server.http, "GET", "/v1/gaps?series=one", "").1;
        assert_eq!(
            (&gaps["gaps"][0]["reason"], &gaps["gaps"][0]["first"]),
            (&json!("outbox_dlq"), &json!(1))
        );
        one.behave(Behaviour::Accepts);
        assert_eq!(post(server.http, &format!("/v1/outbox/{bad}/retry"), "").0, 200);
        while state(server.http, &bad) != "delivered" {}
        post(server.http, "/v1/reconcile", "");
        assert_eq!(
            ask(server.http, "GET", "/v1/gaps?series=one", "").1["gaps"],
            json!([]),
            "delivery closes its gap"
        );
        let delivered = number(server.http, "other", "poison");
        while state(server.http, &delivered) != "delivered" {}
        assert_eq!(
            post(server.http, &format!("/v1/outbox/{delivered}/abandon"), "").1["code"],
            "wrong_state"
        );
    }
}

#[test]
fn a_sink_that_fails_or_hangs_gets_few_requests_and_other_sinks_are_not_delayed() {
    for (home, behaviour) in [(Home::folder(), Behaviour::Hangs), (Home::postgres(), Behaviour::Fails)] {
        let (one, other) = (Receiver::start(behaviour), Receiver::start(Behaviour::Accepts));
        let server = home.start(&series(&one, &other));
        let stuck: Vec<String> = (0..100).map(|_| number(server.http, "one", "stuck")).collect();
        let free: Vec<String> = (0..100).map(|_| number(server.http, "other", "free")).collect();
        for number in &free {
            while state(server.http, number) != "delivered" {}
        }
        let requests = one.requests();
        assert!(requests <= 200, "{requests} requests for 100 documents while it accepted none");
        one.behave(Behaviour::Accepts);
        for number in &stuck {
            while state(server.http, number) != "delivered" {}
        }
        let mut accepted = one.accepted();
        accepted.sort();
        accepted.dedup();
        assert_eq!(accepted.len(), 100, "each document at least once");
    }
}

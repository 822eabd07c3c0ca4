//! Requests without a secret: how many an address may send, and that probes and callers are always answered.

use super::super::http::send;
use super::super::wire::exchange;
use super::{Rig, SECRET, code};

/// A server that lets each address send one request without a secret a second.
fn start() -> Rig {
    Rig::start(&[("BATES_STRANGER_REQUESTS_MAX", "1")])
}

#[test]
fn strangers_get_429_beyond_their_rate_and_probes_and_callers_are_answered() {
    let rig = start();
    for path in ["/v1/series", "/openapi.json", "/docs/", "/v1/idgenerator/version", "/metrics"] {
        while rig.status_of(path) != 429 {}
        let (status, head, body) = send(rig.server.http, &format!("GET {path}"), "", "");
        if status == 429 {
            assert!(head.contains("retry-after: 1") && head.contains("connection: close"), "{path}: {head}");
            assert_eq!(code(&body), "too_many_requests", "{path}");
        }
        for probe in ["/healthz", "/readyz", "/v1/idgenerator/health"] {
            assert_eq!(rig.status_of(probe), 200, "{probe}");
        }
        assert_eq!(rig.status(SECRET), 200);
    }
    assert!(rig.metric("bates_refused_total{reason=\"strangers\"}") >= 5);
}

#[test]
fn over_redis_strangers_get_busy_beyond_their_rate_and_a_known_caller_is_answered() {
    let rig = start();
    let ping = || exchange(&rig.server, b"PING\r\n");
    while !ping().starts_with("-BUSY too_many_requests: ") {}
    let login = format!("AUTH \"{SECRET}\"\r\nPING\r\n");
    while exchange(&rig.server, login.as_bytes()) != "+OK\r\n+PONG\r\n" {}
    while !ping().starts_with("-BUSY too_many_requests: ") {}
    for _ in 0..50 {
        assert_eq!(exchange(&rig.server, login.as_bytes()), "+OK\r\n+PONG\r\n");
    }
    let flood = exchange(&rig.server, "PING\r\n".repeat(100).as_bytes());
    let (refused, others) = (flood.matches("-BUSY").count(), flood.matches("-NOAUTH").count());
    assert!(refused == 1 && others < 50, "the connection ends: {flood}");
}

#[test]
fn a_caller_that_authenticates_is_not_counted_as_a_stranger() {
    let rig = Rig::start(&[("BATES_STRANGER_REQUESTS_MAX", "2")]);
    let login = format!("AUTH \"{SECRET}\"\r\nPING\r\n");
    // Many more connections than strangers may open, each of a caller.
    for _ in 0..100 {
        assert_eq!(exchange(&rig.server, login.as_bytes()), "+OK\r\n+PONG\r\n");
    }
    assert_eq!(rig.metric("bates_refused_total{reason=\"strangers\"}"), 0);
}

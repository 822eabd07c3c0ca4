//! Wrong secrets: how many are checked, and that callers are not locked out by another client of their address.

use super::super::http::send;
use super::super::wire::exchange;
use super::{Rig, SECRET, code};

const NEVER_SEEN: (&str, &str) = ("BATES_TOKENS__OTHER__SECRET", "close sesame, close sesame");

/// A server whose second secret was never sent yet.
fn start() -> Rig {
    Rig::start(&[NEVER_SEEN, ("BATES_TOKENS__OTHER__MAY", "read")])
}

#[test]
fn over_http_a_guess_beyond_ten_learns_nothing_even_if_it_is_right() {
    let rig = start();
    for guess in 0..10 {
        assert_eq!(rig.status(&format!("guess {guess}")), 401);
    }
    let (wrong, right) = (rig.ask("guess", "GET /v1/series"), rig.ask(NEVER_SEEN.1, "GET /v1/series"));
    for (status, head, body) in [&wrong, &right] {
        assert_eq!((*status, &*code(body)), (429, "too_many_requests"));
        assert!(head.contains("retry-after: 1") && head.contains("connection: close"), "{head}");
    }
    assert_eq!(wrong.2, right.2);
    // One more is checked each second; the refusals meanwhile did not put that off.
    while rig.status(NEVER_SEEN.1) == 429 {}
    assert_eq!(rig.status(NEVER_SEEN.1), 200);
}

#[test]
fn over_redis_a_guess_beyond_ten_learns_nothing_and_ends_the_connection() {
    let rig = start();
    let guesses = exchange(&rig.server, "AUTH guess\r\n".repeat(9).as_bytes());
    assert_eq!(guesses.matches("-WRONGPASS").count(), 9, "{guesses}");
    assert_eq!(rig.status("guess"), 401, "both ports count together");
    for guess in [
        "AUTH guess",
        "AUTH \"close sesame, close sesame\"",
        "HELLO 3 AUTH other \"close sesame, close sesame\"",
    ] {
        let answer = exchange(&rig.server, format!("{guess}\r\nPING\r\n").as_bytes());
        assert!(answer.starts_with("-BUSY too_many_requests: ") && answer.lines().count() == 1, "{answer}");
    }
}

#[test]
fn a_caller_whose_secret_was_right_before_is_served_while_its_address_guesses() {
    let rig = start();
    assert_eq!(rig.status(SECRET), 200);
    rig.guess_until_refused();
    assert_eq!(rig.status(SECRET), 200);
    let redis = format!("AUTH \"{SECRET}\"\r\nPING\r\n");
    assert_eq!(exchange(&rig.server, redis.as_bytes()), "+OK\r\n+PONG\r\n", "over the other port as well");
    assert_eq!(rig.status(NEVER_SEEN.1), 429);
}

#[test]
fn guesses_are_counted_and_noted_without_the_guess() {
    let mut rig = start();
    rig.guess_until_refused();
    assert_eq!(rig.status("guess of sesame"), 429);
    while rig.status(SECRET) == 429 {}
    assert!(rig.metric("bates_wrong_secrets_total") >= 10);
    assert!(rig.metric("bates_refused_total{reason=\"wrong_secrets\"}") >= 2);
    let note = rig.server.wait_until_it_said("wrong secret");
    assert!(note.contains("the latest wrong secret came from 127.0.0.1"), "{note}");
    let rest = rig.server.stop();
    assert!(!note.contains("sesame") && !rest.contains("sesame") && rest.lines().count() < 5, "{note}{rest}");
}

#[test]
fn a_server_without_a_secret_slows_no_client_down() {
    let data = tempfile::tempdir().unwrap();
    let server = super::Server::start(data.path());
    for _ in 0..200 {
        let status = send(server.http, "GET /v1/series", "Authorization: Bearer any\r\n", "").0;
        assert_eq!(status, 200);
    }
    let answer = exchange(&server, "AUTH any\r\n".repeat(200).as_bytes());
    assert_eq!(answer.matches("-ERR AUTH called without any password").count(), 200);
}

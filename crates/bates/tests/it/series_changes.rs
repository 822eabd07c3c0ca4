//! A series changed again and again while callers take numbers from it, on a server process: no call is refused, and
//! numbers ascend.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bates_testkit::history::{Client as Log, Gaps, History, Rules, Scope};

use super::http::ask;
use super::running::{Client, Server};

const SERIES: &str = r#"{"pattern":"{seq}","promise":"ordered","key":"tenant:{name}"}"#;

/// Requests that each caller sends.
const ROUNDS: usize = 1_500;

/// The request that a caller repeats.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    Run,
    List,
    Reservation,
}

fn call(kind: Kind, server: &Server, log: &mut Log, scope: Scope) {
    let (mut resp, mut http) = (Client::connect(server.port).unwrap(), Client::connect(server.http).unwrap());
    for _ in 0..ROUNDS {
        let request = log.ask(scope);
        let (answer, count) = match kind {
            Kind::Number => (resp.send(&["INCR", "tenant:a"]), 1),
            Kind::Run => (resp.send(&["INCRBY", "tenant:a", "5"]), 5),
            Kind::List => (http.post("/v1/series/tenant/next?name=a"), 1),
            Kind::Reservation => {
                (http.post_json("/v1/series/tenant/reservations", r#"{"scope":{"name":"a"}}"#), 1)
            }
        };
        let answer = answer.unwrap();
        let last = number(&answer).unwrap_or_else(|| panic!("refused: {answer}"));
        log.answered(request, last + 1 - count, last);
    }
}

/// The number in an answer of either protocol.
fn number(answer: &str) -> Option<u64> {
    if let Some(number) = answer.strip_prefix(':') {
        return number.parse().ok();
    }
    let json: serde_json::Value = serde_json::from_str(answer).ok()?;
    let id = if json["id"].is_string() { &json["id"] } else { &json["ids"][0] };
    id.as_str()?.parse().ok()
}

#[test]
fn numbers_and_reservations_ascend_without_refusals_while_their_series_changes() {
    check_that_numbers_ascend(&[Kind::Number, Kind::Run, Kind::List, Kind::Reservation]);
}

#[test]
fn numbers_from_memory_ascend_without_refusals_while_their_series_changes() {
    check_that_numbers_ascend(&[Kind::Number, Kind::Run, Kind::List]);
}

/// Runs two callers of each kind beside a thread that changes the series without a pause.
fn check_that_numbers_ascend(kinds: &[Kind]) {
    let data = tempfile::tempdir().unwrap();
    let server = &Server::start(data.path());
    assert_eq!(ask(server.http, "PUT", "/v1/series/tenant", SERIES).0, 201);
    let (history, is_over) = (History::default(), &AtomicBool::new(false));
    let changes = thread::scope(|threads| {
        let call = |kind: &Kind| {
            let (mut log, scope, kind) = (history.client(), history.scope("a"), *kind);
            threads.spawn(move || call(kind, server, &mut log, scope))
        };
        let callers: Vec<_> = kinds.iter().chain(kinds).map(call).collect();
        let changer = threads.spawn(move || {
            let mut changes = 0_u64;
            while !is_over.load(Ordering::SeqCst) {
                changes += 1;
                let body = format!(r#"{{"limits":{{"lease_max":{}}}}}"#, 100 + changes % 50);
                assert_eq!(ask(server.http, "PATCH", "/v1/series/tenant", &body).0, 200);
            }
            changes
        });
        let ended: Vec<_> = callers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(ended.iter().all(Result::is_ok), "a caller was refused");
        changer.join().unwrap()
    });
    assert_eq!(history.check(Rules { is_ordered: true, gaps: Gaps::Any }), []);
    assert!(changes > 100, "{changes} changes in {} answers", history.len());
}

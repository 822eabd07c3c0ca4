//! Servers killed under load: every number that a caller received is in the audit, under the right name. The check
//! returns what it found, so that tests can also show that it catches a planted bug.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread;

use super::super::documents::Home;
use super::super::running::Client;
use super::{TOKENS, ask_as, entries};

const KILLS: u64 = 5;
const BETWEEN_KILLS: u64 = 120;
const SERIES: &str = "  n: { pattern: \"N-{seq}\", key: \"n\", audit: true }\n  c: { pattern: \"{seq}\", key: c, audit: true }\n";

/// Each caller with a number that it received.
type Answered = Vec<(&'static str, String)>;

/// State that the clients share.
struct Shared {
    http: AtomicU16,
    resp: AtomicU16,
    answered: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn is_running(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    fn count_answer(&self) {
        self.answered.fetch_add(1, Ordering::SeqCst);
    }

    fn over_http(&self, caller: &'static str, secret: &str) -> Answered {
        let mut answered = Vec::new();
        while self.is_running() {
            let port = self.http.load(Ordering::SeqCst);
            let (status, answer) = ask_as(port, secret, "POST /v1/series/n/next?count=2", "");
            if status == 200 {
                let numbers = answer["ids"].as_array().unwrap().iter();
                answered.extend(numbers.map(|number| (caller, number.as_str().unwrap().to_owned())));
                self.count_answer();
            }
        }
        answered
    }

    fn over_resp(&self, caller: &'static str, secret: &str) -> Answered {
        let mut answered = Vec::new();
        while self.is_running() {
            let Some(mut client) = Client::connect(self.resp.load(Ordering::SeqCst)) else { continue };
            if client.send(&["AUTH", caller, secret]).as_deref() != Some("+OK") {
                continue;
            }
            while self.is_running()
                && let Some(number) = client.incr("c")
            {
                answered.push((caller, number.to_string()));
                self.count_answer();
            }
        }
        answered
    }
}

fn check_answers_after_kills(home: &Home, bug: Option<&str>) -> Result<usize, String> {
    let mut environment = TOKENS.to_vec();
    environment.extend(bug.map(|bug| ("BATES_PLANTED_BUG", bug)));
    let mut server = Some(home.start_with(SERIES, &environment));
    let ports = server.as_ref().map(|server| (server.http, server.port)).unwrap();
    let shared = Shared {
        http: ports.0.into(),
        resp: ports.1.into(),
        answered: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let answered: Answered = thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let shared = &shared;
                let (caller, secret) = if client % 2 == 0 { ("registry", "one") } else { ("clinic", "two") };
                scope.spawn(move || {
                    if client < 4 {
                        shared.over_http(caller, secret)
                    } else {
                        shared.over_resp(caller, secret)
                    }
                })
            })
            .collect();
        for kill in 1..=KILLS {
            while shared.answered.load(Ordering::SeqCst) < kill * BETWEEN_KILLS {
                thread::yield_now();
            }
            server.take().unwrap().kill();
            let fresh = home.start_with(SERIES, &environment);
            shared.http.store(fresh.http, Ordering::SeqCst);
            shared.resp.store(fresh.port, Ordering::SeqCst);
            server = Some(fresh);
        }
        shared.is_over.store(true, Ordering::SeqCst);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    check(&answered, &recorded(server.unwrap().http))?;
    Ok(answered.len())
}

/// Every number in the audit, with the caller that it names.
fn recorded(port: u16) -> BTreeMap<String, String> {
    let mut recorded = BTreeMap::new();
    for entry in entries(port, "") {
        let prefix = if entry["series"] == "n" { "N-" } else { "" };
        for position in entry["from"].as_u64().unwrap()..entry["to"].as_u64().unwrap() {
            let caller = entry["who"].as_str().unwrap().to_owned();
            assert_eq!(
                recorded.insert(format!("{prefix}{position}"), caller),
                None,
                "{prefix}{position} twice"
            );
        }
    }
    recorded
}

fn check(answered: &Answered, recorded: &BTreeMap<String, String>) -> Result<(), String> {
    for (caller, number) in answered {
        match recorded.get(number) {
            Some(found) if found == caller => {}
            Some(found) => return Err(format!("{caller} received {number}, but the audit names {found}")),
            None => return Err(format!("{caller} received {number}, which is not recorded")),
        }
    }
    Ok(())
}

#[test]
fn the_audit_of_an_embedded_store_has_every_answer_after_kills() {
    let answered = check_answers_after_kills(&Home::folder(), None).unwrap();
    assert!(answered as u64 >= KILLS * BETWEEN_KILLS, "{answered} answers");
}

#[test]
fn the_audit_on_postgres_has_every_answer_after_kills() {
    let answered = check_answers_after_kills(&Home::postgres(), None).unwrap();
    assert!(answered as u64 >= KILLS * BETWEEN_KILLS, "{answered} answers");
}

#[test]
fn a_server_that_answers_before_it_records_is_caught() {
    let caught = check_answers_after_kills(&Home::folder(), Some("answer-before-record")).unwrap_err();
    assert!(caught.contains("which is not recorded"), "{caught}");
}

//! Servers killed under load: every number that anybody was answered is in the audit, under the right name. The check
//! answers what it found, so that the server that is right passes it and one with a planted bug is caught by it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread;

use super::super::documents::Home;
use super::super::running::Client;
use super::{TOKENS, ask_as, entries};

const KILLS: u64 = 5;
const BETWEEN_KILLS: u64 = 120;
const SERIES: &str = "  n: { pattern: \"N-{seq}\", key: \"n\", audit: true }\n  c: { pattern: \"{seq}\", key: c, audit: true }\n";

/// Who was answered which number.
type Answered = Vec<(&'static str, String)>;

/// What the clients share.
struct Shared {
    http: AtomicU16,
    resp: AtomicU16,
    answered: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    fn answered(&self) {
        self.answered.fetch_add(1, Ordering::SeqCst);
    }

    fn over_http(&self, who: &'static str, secret: &str) -> Answered {
        let mut answered = Vec::new();
        while self.goes_on() {
            let port = self.http.load(Ordering::SeqCst);
            let (status, given) = ask_as(port, secret, "POST /v1/series/n/next?count=2", "");
            if status == 200 {
                let numbers = given["ids"].as_array().unwrap().iter();
                answered.extend(numbers.map(|number| (who, number.as_str().unwrap().to_owned())));
                self.answered();
            }
        }
        answered
    }

    fn over_resp(&self, who: &'static str, secret: &str) -> Answered {
        let mut answered = Vec::new();
        while self.goes_on() {
            let Some(mut client) = Client::connect(self.resp.load(Ordering::SeqCst)) else { continue };
            if client.send(&["AUTH", who, secret]).as_deref() != Some("+OK") {
                continue;
            }
            while self.goes_on()
                && let Some(number) = client.incr("c")
            {
                answered.push((who, number.to_string()));
                self.answered();
            }
        }
        answered
    }
}

fn every_answer_is_recorded_when_killed(home: &Home, bug: Option<&str>) -> Result<usize, String> {
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
                let (who, secret) = if client % 2 == 0 { ("registry", "one") } else { ("clinic", "two") };
                scope.spawn(move || {
                    if client < 4 { shared.over_http(who, secret) } else { shared.over_resp(who, secret) }
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

/// Every number of the audit, and who took it.
fn recorded(port: u16) -> BTreeMap<String, String> {
    let mut recorded = BTreeMap::new();
    for entry in entries(port, "") {
        let prefix = if entry["series"] == "n" { "N-" } else { "" };
        for position in entry["from"].as_u64().unwrap()..entry["to"].as_u64().unwrap() {
            let who = entry["who"].as_str().unwrap().to_owned();
            assert_eq!(recorded.insert(format!("{prefix}{position}"), who), None, "{prefix}{position} twice");
        }
    }
    recorded
}

fn check(answered: &Answered, recorded: &BTreeMap<String, String>) -> Result<(), String> {
    for (who, number) in answered {
        match recorded.get(number) {
            Some(found) if found == who => {}
            Some(found) => return Err(format!("{who} was answered {number}, and {found} is recorded")),
            None => return Err(format!("{who} was answered {number}, which is not recorded")),
        }
    }
    Ok(())
}

#[test]
fn every_answer_of_the_embedded_store_is_recorded_when_killed() {
    let answered = every_answer_is_recorded_when_killed(&Home::folder(), None).unwrap();
    assert!(answered as u64 >= KILLS * BETWEEN_KILLS, "{answered} answers");
}

#[test]
fn every_answer_on_postgres_is_recorded_when_killed() {
    let answered = every_answer_is_recorded_when_killed(&Home::postgres(), None).unwrap();
    assert!(answered as u64 >= KILLS * BETWEEN_KILLS, "{answered} answers");
}

#[test]
fn a_server_that_answers_before_it_records_is_caught() {
    let caught =
        every_answer_is_recorded_when_killed(&Home::folder(), Some("answer-before-record")).unwrap_err();
    assert!(caught.contains("which is not recorded"), "{caught}");
}

//! Memory that requests and answers hold: beyond the budget the largest connections are closed, and others are served.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;

use super::super::running::{Client, Server};
use super::{Rig, SECRET};

const BUDGET_MB: u64 = 16;
/// Together far more than the budget.
const CONNECTIONS: usize = 1_200;

fn start() -> Rig {
    Rig::start(&[("BATES_MEMORY_MAX_MB", "16"), ("BATES_STRANGER_REQUESTS_MAX", "1000000")])
}

/// Resident memory of the server, in megabytes.
fn resident_mb(rig: &Rig) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", rig.server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1024
}

/// Opens connections that send `bytes` and read nothing, while a caller goes on.
fn attack(rig: &Rig, port: u16, bytes: &[u8]) -> Vec<TcpStream> {
    let mut caller = Client::connect(rig.server.port).unwrap();
    assert_eq!(caller.send(&["AUTH", SECRET]).as_deref(), Some("+OK"));
    let before = resident_mb(rig);
    let mut attackers = Vec::new();
    for at in 1..=CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // The server closes some of them.
        let _ = stream.write_all(bytes);
        attackers.push(stream);
        if at % 100 == 0 {
            assert!(caller.incr("counter:a").is_some(), "a caller is served");
        }
    }
    assert!(caller.incr("counter:a").is_some());
    let (used, growth) = (rig.metric("bates_memory_bytes"), resident_mb(rig) - before);
    assert!(used <= BUDGET_MB << 20, "{used} bytes count");
    assert!(rig.metric("bates_connections_closed_total{reason=\"large\"}") > 0);
    // Allocators and tasks take memory beside what counts; without the budget it would be 70 MB.
    assert!(growth < 2 * BUDGET_MB + 8, "resident memory grew by {growth} MB");
    attackers
}

#[test]
fn unfinished_commands_of_strangers_hold_no_more_than_the_budget() {
    let rig = start();
    let command = format!("*9\r\n{}", format!("$12000\r\n{}\r\n", "x".repeat(12_000)).repeat(5));
    attack(&rig, rig.server.port, &command.as_bytes()[..60_000]);
}

#[test]
fn unfinished_heads_of_strangers_are_refused_or_hold_no_more_than_the_budget() {
    let rig = start();
    let head = format!("GET /v1/series HTTP/1.1\r\nX-Long: {}", "x".repeat(15_500));
    // Each holds a slot of 16 KiB, and 1,200 of them more than the budget: later ones give way or are refused.
    let before = resident_mb(&rig);
    let attackers: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", rig.server.http)).unwrap();
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    assert_eq!(rig.status_of("/healthz"), 200);
    let growth = resident_mb(&rig) - before;
    assert!(growth < 2 * BUDGET_MB + 8, "resident memory grew by {growth} MB");
    // Strangers that stay silent give way to a caller.
    while rig.status(SECRET) != 200 {}
    assert!(rig.metric("bates_memory_bytes") <= BUDGET_MB << 20);
    drop(attackers);
    let long = format!("GET /v1/series HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(super::exchange(rig.server.http, long.as_bytes()).0, 431, "a longer head is refused");
}

#[test]
fn answers_over_http_that_are_not_read_hold_no_more_than_the_budget() {
    let rig = start();
    let request = format!(
        "POST /v1/series/short/next?count=100000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\nContent-Length: 0\r\n\r\n"
    );
    read_no_answers(&rig, rig.server.http, &request.repeat(20));
}

#[test]
fn answers_over_redis_that_are_not_read_hold_no_more_than_the_budget() {
    let rig = start();
    let commands = "LPOP short 100000\r\n".repeat(20);
    read_no_answers(&rig, rig.server.port, &format!("AUTH \"{SECRET}\"\r\n{commands}"));
}

#[test]
fn queued_commands_count_as_memory_until_the_transaction_ends() {
    let rig = start();
    let mut caller = Client::connect(rig.server.port).unwrap();
    assert_eq!(caller.send(&["AUTH", SECRET]).as_deref(), Some("+OK"));
    assert_eq!(caller.send(&["MULTI"]).as_deref(), Some("+OK"));
    let long = "x".repeat(400_000);
    for _ in 0..8 {
        assert_eq!(caller.send(&["ECHO", &long]).as_deref(), Some("+QUEUED"));
    }
    // What it holds counts when the server waits for the next command.
    while rig.metric("bates_memory_bytes") < 3_200_000 {}
    assert_eq!(caller.send(&["DISCARD"]).as_deref(), Some("+OK"));
    while rig.metric("bates_memory_bytes") >= 3_200_000 {}
}

/// Callers that ask for more than their sockets hold, and read nothing.
fn read_no_answers(rig: &Rig, port: u16, requests: &str) {
    const READERS: usize = 40;
    let mut caller = Client::connect(rig.server.port).unwrap();
    assert_eq!(caller.send(&["AUTH", SECRET]).as_deref(), Some("+OK"));
    let before = resident_mb(rig);
    let greedy: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let _ = stream.write_all(requests.as_bytes());
            stream
        })
        .collect();
    // Ends only because the server refuses to hold more for clients that read nothing.
    while rig.metric("bates_refused_total{reason=\"memory\"}") == 0 {
        assert!(caller.incr("counter:a").is_some(), "a caller is served");
    }
    assert!(rig.metric("bates_memory_bytes") <= BUDGET_MB << 20);
    assert!(caller.incr("counter:a").is_some());
    // Allocators and tasks take memory beside what counts.
    let growth = resident_mb(rig) - before;
    assert!(growth < 2 * BUDGET_MB + 8, "resident memory grew by {growth} MB");
    for mut stream in greedy {
        stream.set_nonblocking(true).unwrap();
        if let Err(error) = stream.write(b"x") {
            assert!(matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::WouldBlock
            ));
        }
    }
}

#[test]
fn new_scopes_beyond_those_in_memory_are_refused_and_known_ones_go_on() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SCOPES_IN_MEMORY_MAX", "1000")]);
    let mut client = Client::connect(server.port).unwrap();
    let answers: Vec<String> =
        (0..3_000).map(|scope| client.incr_raw(&format!("counter:{scope}")).unwrap()).collect();
    let issued: Vec<usize> = (0..answers.len()).filter(|at| answers[*at].starts_with(':')).collect();
    assert!((1_000..=1_024).contains(&issued.len()), "{} of 3,000 scopes", issued.len());
    let refused = answers.iter().find(|answer| !answer.starts_with(':')).unwrap();
    assert!(refused.starts_with("-BUSY overloaded"), "{refused}");
    for scope in issued {
        assert_eq!(client.incr(&format!("counter:{scope}")), Some(2), "a scope in memory goes on");
    }
}

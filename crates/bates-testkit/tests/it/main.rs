//! Tests of the testkit itself: its private servers, the history checker, the store in memory and the simulator.
#![allow(clippy::unwrap_used)]

mod history;
mod memory;
mod simulation;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use bates_testkit::{PrivatePgBouncer, PrivatePostgres, PrivateRedis, programs, shared_servers};

/// Runs SQL and returns its output without decoration.
fn query(url: &str, sql: &str) -> String {
    let psql = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let output = Command::new(psql)
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
        .args(["--command", sql, url])
        .output()
        .expect("psql runs");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("psql writes UTF-8").trim().to_owned()
}

/// Sends one inline command and returns the first line of the answer.
fn ask(port: u16, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("Redis accepts");
    write!(stream, "{command}\r\n").expect("Redis reads");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("Redis answers");
    answer.trim_end().to_owned()
}

/// A process that ended but was not reaped counts as alive: it still holds its id.
fn is_alive(pid: u32) -> bool {
    let probe = r#"kill -0 "$1" 2>/dev/null"#;
    Command::new("sh").args(["-c", probe, "sh", &pid.to_string()]).status().expect("sh runs").success()
}

#[test]
fn a_private_postgres_answers_a_query() {
    let server = PrivatePostgres::start().unwrap();
    assert_eq!(query(&server.url(), "SELECT 6 * 7"), "42");
    assert_eq!(query(&server.url(), "SHOW fsync"), "on");
    assert_eq!(query(&server.url(), "SHOW server_encoding"), "UTF8");
    assert_eq!(query(&server.url(), "SHOW listen_addresses"), "127.0.0.1");
}

#[test]
fn a_private_pgbouncer_forgets_a_session_between_transactions() {
    let server = PrivatePostgres::start().unwrap();
    let bouncer = PrivatePgBouncer::start(&server).unwrap();
    assert_eq!(query(&bouncer.url(), "SELECT 6 * 7"), "42");
    query(&bouncer.url(), "CREATE TABLE seen (pid int)");
    // More clients than connections, so that clients share them.
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let url = bouncer.url();
            std::thread::spawn(move || query(&url, "INSERT INTO seen SELECT pg_backend_pid()"))
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let sessions: u32 = query(&server.url(), "SELECT count(DISTINCT pid) FROM seen").parse().unwrap();
    assert!((1..=4).contains(&sessions), "{sessions} connections for 20 clients");
}

#[test]
fn a_private_postgres_keeps_committed_data_when_killed() {
    let mut server = PrivatePostgres::start().unwrap();
    query(&server.url(), "CREATE TABLE cursor_row (next bigint); INSERT INTO cursor_row VALUES (2001)");
    let (pid, url) = (server.pid(), server.url());
    server.kill().unwrap();
    assert!(!is_alive(pid));
    server.restart().unwrap();
    assert_eq!(server.url(), url);
    assert_ne!(server.pid(), pid);
    assert_eq!(query(&server.url(), "SELECT next FROM cursor_row"), "2001");
}

#[test]
fn a_private_postgres_restarts_after_a_clean_stop() {
    let mut server = PrivatePostgres::start().unwrap();
    query(&server.url(), "CREATE TABLE empty ()");
    server.stop().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.restart().unwrap();
    assert_eq!(query(&server.url(), "SELECT count(*) FROM empty"), "0");
}

#[test]
fn a_private_redis_answers_ping() {
    let server = PrivateRedis::start().unwrap();
    assert_eq!(ask(server.port(), "PING"), "+PONG");
}

#[test]
fn a_private_redis_loses_its_data_when_killed() {
    let mut server = PrivateRedis::start().unwrap();
    assert_eq!(ask(server.port(), "SET pool 1"), "+OK");
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(ask(server.port(), "EXISTS pool"), ":0");
}

#[test]
fn two_private_servers_share_nothing() {
    let (first, second) = (PrivateRedis::start().unwrap(), PrivateRedis::start().unwrap());
    assert_ne!(first.port(), second.port());
    assert_eq!(ask(first.port(), "SET pool 1"), "+OK");
    assert_eq!(ask(second.port(), "EXISTS pool"), ":0");

    let (first, second) = (PrivatePostgres::start().unwrap(), PrivatePostgres::start().unwrap());
    query(&first.url(), "CREATE TABLE only_here ()");
    assert_eq!(query(&second.url(), "SELECT to_regclass('only_here') IS NULL"), "t");
}

#[test]
fn dropping_a_server_ends_its_process() {
    let (postgres, redis) = (PrivatePostgres::start().unwrap(), PrivateRedis::start().unwrap());
    let pids = [postgres.pid(), redis.pid()];
    let folder = query(&postgres.url(), "SHOW data_directory");
    assert!(pids.into_iter().all(is_alive));
    drop((postgres, redis));
    assert!(!pids.into_iter().any(is_alive));
    assert!(!Path::new(&folder).exists());
}

/// A plain `cargo test` has no shared servers; each test that needs one starts its own.
#[test]
fn the_shared_servers_answer_if_there_are_any() {
    if let Some(url) = shared_servers::postgres_url() {
        assert_eq!(query(&url, "SELECT 6 * 7"), "42");
    }
    if let Some(url) = shared_servers::redis_url() {
        let port =
            url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("the URL ends with a port");
        assert_eq!(ask(port, "PING"), "+PONG");
    }
}

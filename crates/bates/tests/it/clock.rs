//! A clock that jumps by an hour and by a year, back and forth, under load: no number depends on the clock.

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;

use bates_testkit::history::{Gaps, Rules};
use bates_testkit::programs;
use serde_json::Value;

use super::http::ask;
use super::load::Load;
use super::running::{Client, Server};

const HOUR: i64 = 3_600;
const YEAR: i64 = 365 * 24 * HOUR;

/// The path of libfaketime, as its program `faketime` reports it.
fn library() -> String {
    let faketime = programs::find("faketime").expect("faketime; run `cargo xtask test`, which installs it");
    let output = Command::new(faketime).args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Environment variables that put libfaketime between a server and its clocks; the file `clock` sets the offset.
fn variables<'a>(library: &'a str, clock: &'a Path) -> Vec<(&'static str, &'a str)> {
    vec![
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
    ]
}

/// Renames the file into place, so that a server never reads half of an offset.
fn set_clock(file: &Path, offset: i64) {
    let next = file.with_extension("next");
    fs::write(&next, format!("{offset:+}\n")).unwrap();
    fs::rename(next, file).unwrap();
}

/// The time by the server's clock, in seconds.
fn time(server: &Server) -> i64 {
    let mut client = Client::connect(server.port).unwrap();
    client.stream.get_mut().write_all(b"TIME\r\n").unwrap();
    let mut lines = client.stream.lines().map(Result::unwrap);
    lines.nth(2).unwrap().parse().unwrap()
}

fn check_numbers_while_the_clock_jumps(environment: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let (data, clock) = (folder.path().join("data"), folder.path().join("clock"));
    set_clock(&clock, 0);
    let library = library();
    let mut variables = variables(&library, &clock);
    variables.extend(environment);
    let load = Load::begin(8, 100);
    let server = Server::start_with(&data, "127.0.0.1:0", &variables);
    load.ask(&server);
    load.wait_for(500);
    let started = time(&server);
    for offset in [HOUR, -HOUR, 0, YEAR, -YEAR, 0] {
        set_clock(&clock, offset);
        let jumped = time(&server) - started;
        // The test itself takes far less than half an hour.
        assert!((jumped - offset).abs() < HOUR / 2, "the clock did not jump by {offset}: {jumped}");
        load.wait_for(500);
    }
    set_clock(&clock, -YEAR);
    server.kill();
    // By its clock, the server starts a year before it was killed.
    let server = Server::start_with(&data, "127.0.0.1:0", &variables);
    load.ask(&server);
    load.wait_for(500);
    let history = load.end();
    assert_eq!(history.check(Rules { is_ordered: true, gaps: Gaps::Any }), []);
    assert!(server.stop().contains("stopped"), "the server stops cleanly");
}

#[test]
fn numbers_stay_unique_and_ordered_when_the_wall_clock_jumps() {
    check_numbers_while_the_clock_jumps(&[("DONT_FAKE_MONOTONIC", "1")]);
}

#[test]
fn numbers_stay_unique_and_ordered_when_the_monotonic_clock_jumps() {
    check_numbers_while_the_clock_jumps(&[]);
}

/// Reserves a number, and returns it with the token of the reservation.
fn reserve(server: &Server, seconds: i64) -> (String, String) {
    let body = format!(r#"{{"scope":{{"project":"PROJ","type":"9012"}},"seconds":{seconds}}}"#);
    let (status, answer) = ask(server.http, "POST", "/v1/series/document/reservations", &body);
    assert_eq!(status, 201, "{answer}");
    let text = |field: &str| answer[field].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

fn document(server: &Server, number: &str) -> Value {
    ask(server.http, "GET", &format!("/v1/documents/{number}"), "").1
}

#[test]
fn a_reservation_keeps_its_remaining_time_when_the_clock_is_a_year_off_after_a_restart() {
    for offset in [YEAR, -YEAR] {
        let folder = tempfile::tempdir().unwrap();
        let (data, clock, library) = (folder.path().join("data"), folder.path().join("clock"), library());
        set_clock(&clock, 0);
        let variables = variables(&library, &clock);
        let server = Server::start_with(&data, "127.0.0.1:0", &variables);
        let (number, token) = reserve(&server, 900);
        // Stopped cleanly here, killed in the loop below.
        server.stop();
        set_clock(&clock, offset);
        for error in [offset, 0] {
            let server = Server::start_with(&data, "127.0.0.1:0", &variables);
            let reserved = document(&server, &number);
            assert_eq!(reserved["state"], "reserved", "with a clock that is {error} s off: {reserved}");
            let due: jiff::Timestamp = reserved["due"].as_str().unwrap().parse().unwrap();
            let left = due.as_second() - time(&server);
            assert!((600..=900).contains(&left), "{left} s are left with a clock that is {error} s off");
            server.kill();
            set_clock(&clock, 0);
        }
        let server = Server::start_with(&data, "127.0.0.1:0", &variables);
        let (status, confirmed) = ask(server.http, "POST", &format!("/v1/reservations/{token}/confirm"), "");
        assert_eq!((status, &confirmed["state"]), (200, &"confirmed".into()), "{confirmed}");
    }
}

#[test]
fn a_clock_set_back_a_year_does_not_delay_the_voiding_of_a_reservation() {
    let folder = tempfile::tempdir().unwrap();
    let (data, clock, library) = (folder.path().join("data"), folder.path().join("clock"), library());
    set_clock(&clock, 0);
    let variables = variables(&library, &clock);
    let server = Server::start_with(&data, "127.0.0.1:0", &variables);
    let (number, _) = reserve(&server, 2);
    server.kill();
    set_clock(&clock, -YEAR);
    let server = Server::start_with(&data, "127.0.0.1:0", &variables);
    while document(&server, &number)["state"] != "voided" {}
}

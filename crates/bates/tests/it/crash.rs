//! Crashes and failed syncs at chosen system calls. Each check returns its finding, so that a correct server passes
//! it and a server with a planted bug is caught by it.

use std::path::Path;
use std::process::Command;

use super::documents::Home;
use super::running::{Client, Server};

/// Max counters requested while waiting for the injected fault.
const KEYS_MAX: u64 = 1_000;

/// The variable that plants a bug in a server.
fn planted_bug(bug: Option<&str>) -> Vec<(&'static str, &str)> {
    bug.map(|bug| ("BATES_PLANTED_BUG", bug)).into_iter().collect()
}

/// Kills the server as it enters a write or a sync of a commit, each in turn. Numbers answered before the kill must
/// not come again. Returns how many there were.
fn check_kills_within_a_commit(bug: Option<&str>) -> Result<usize, String> {
    let data = tempfile::tempdir().unwrap();
    Server::start(data.path()).stop();
    let mut answered = 0;
    for (calls, nths) in [("pwrite64", 1..=40), ("fsync,fdatasync", 1..=16)] {
        for nth in nths {
            let inject = format!("{calls}:signal=KILL:when={nth}");
            let prefix = format!("counter:{nth}.{}", calls.len());
            let before = match Server::start_doomed(data.path(), &inject, &planted_bug(bug)) {
                Some(doomed) => take_until_failure(&doomed, &prefix),
                None => Vec::new(),
            };
            answered += before.len();
            check_that_numbers_rise(data.path(), &before)
                .map_err(|repeat| format!("{repeat} after a kill at {calls} {nth}"))?;
        }
    }
    Ok(answered)
}

/// A failed sync leaves the disk in an unknown state, so the server issues nothing until the store is reopened.
fn check_failed_sync(bug: Option<&str>) -> Result<(), String> {
    let data = tempfile::tempdir().unwrap();
    Server::start(data.path()).stop();
    // Opening the store syncs its folder first.
    let inject = "fsync,fdatasync:error=EIO:when=8+";
    let doomed = Server::start_doomed(data.path(), inject, &planted_bug(bug)).unwrap();
    let before = take_until_failure(&doomed, "counter:before");
    if before.is_empty() || before.len() as u64 == KEYS_MAX {
        return Err(format!("{} counters were begun, and each had to be synced", before.len()));
    }
    let mut client = Client::connect(doomed.port).unwrap();
    for key in 0..10 {
        let answer = client.incr_raw(&format!("counter:after.{key}")).unwrap();
        let is_refused =
            answer.starts_with("-ERR store_poisoned: ") && answer.contains("the store has stopped issuing");
        if !is_refused {
            return Err(format!("the server answered {answer} after a failed sync"));
        }
    }
    drop(doomed);
    check_that_numbers_rise(data.path(), &before)
}

/// Takes the first number of new counters until the server fails to answer.
fn take_until_failure(server: &Server, prefix: &str) -> Vec<(String, u64)> {
    let Some(mut client) = Client::connect(server.port) else { return Vec::new() };
    let keys = (0..KEYS_MAX).map(|key| format!("{prefix}.{key}"));
    keys.map_while(|key| Some((client.incr(&key)?, key))).map(|(number, key)| (key, number)).collect()
}

/// Starts a correct server and checks that it continues above the numbers answered before.
fn check_that_numbers_rise(data: &Path, before: &[(String, u64)]) -> Result<(), String> {
    let server = Server::start(data);
    let mut client = Client::connect(server.port).unwrap();
    for (key, number) in before {
        let again = client.incr(key).unwrap();
        if again <= *number {
            return Err(format!("{key} gave {number}, and {again}"));
        }
    }
    Ok(())
}

#[test]
fn a_server_killed_within_a_commit_repeats_no_number() {
    let answered = check_kills_within_a_commit(None).unwrap();
    assert!(answered >= 10, "{answered} answers between commits");
}

#[test]
fn a_server_that_answers_before_it_commits_is_caught() {
    let caught = check_kills_within_a_commit(Some("answer-before-commit")).unwrap_err();
    assert!(caught.contains("gave 1, and 1 after a kill"), "{caught}");
}

#[test]
fn a_server_that_keeps_new_scopes_in_memory_alone_is_caught() {
    let caught = check_kills_within_a_commit(Some("lose-new-scopes")).unwrap_err();
    assert!(caught.contains("gave 1, and 1 after a kill"), "{caught}");
}

#[test]
fn a_server_answers_with_an_error_after_a_failed_sync() {
    check_failed_sync(None).unwrap();
}

#[test]
fn a_server_that_does_not_sync_is_caught() {
    let caught = check_failed_sync(Some("skip-sync")).unwrap_err();
    assert!(caught.contains("each had to be synced"), "{caught}");
}

/// The numbers that a crash may skip: of a new scope, and at most.
fn crash_skips(home: &Home, series: &str) -> (u64, u64) {
    let mut check = Command::new(env!("CARGO_BIN_EXE_bates"));
    let output =
        check.args(["check", "--json"]).env("BATES_CONFIG", home.path("bates.yaml")).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut reports = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let report = reports.find(|report| report["series"] == series).expect("a report");
    (report["crash_skips"][0].as_u64().unwrap(), report["crash_skips"][1].as_u64().unwrap())
}

#[test]
fn a_crash_skips_no_more_of_a_small_series_than_check_says() {
    let home = Home::folder();
    let series = "  code: { pattern: \"{seq:4}\", key: code }
  plain: { pattern: \"{seq}\" }
";
    let mut last = 0;
    for round in 1..=6 {
        let server = home.start(series);
        let mut client = Client::connect(server.port).unwrap();
        if round == 1 {
            assert_eq!(crash_skips(&home, "code"), (32, 156 + 39), "a range has 1/64 of 10,000 numbers");
            assert_eq!(crash_skips(&home, "plain"), (32, 65_536 + 16_384));
        }
        let mut take = || -> u64 {
            client.send(&["LPOP", "code"]).expect("a length");
            client.line().expect("a number").parse().expect("digits")
        };
        let first = take();
        assert!(first > last && first - last - 1 <= 195, "round {round}: {last}, then {first}");
        last = (0..round * 150).map(|_| take()).last().unwrap();
        server.kill();
    }
}

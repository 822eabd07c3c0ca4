//! Crashes and failed syncs at chosen system calls. Each check answers what it found, so that the server that is
//! right passes it and one with a planted bug is caught by it.

use std::path::Path;

use super::running::{Client, Server};

/// How many counters are asked for before a fault that never comes is given up on.
const KEYS_MAX: u64 = 1_000;

/// The bug that a server is to have.
fn planted(bug: Option<&str>) -> Vec<(&'static str, &str)> {
    bug.map(|bug| ("BATES_PLANTED_BUG", bug)).into_iter().collect()
}

/// The server dies as it enters a write or a sync of a commit, each in turn. What a client was answered before
/// must not come again.
fn repeats_none_when_killed_within_a_commit(bug: Option<&str>) -> Result<usize, String> {
    let data = tempfile::tempdir().unwrap();
    Server::start(data.path()).stop();
    let mut answered = 0;
    for (calls, nths) in [("pwrite64", 1..=40), ("fsync,fdatasync", 1..=16)] {
        for nth in nths {
            let inject = format!("{calls}:signal=KILL:when={nth}");
            let prefix = format!("counter:{nth}.{}", calls.len());
            let before = match Server::start_doomed(data.path(), &inject, &planted(bug)) {
                Some(doomed) => ask_until_it_dies(&doomed, &prefix),
                None => Vec::new(),
            };
            answered += before.len();
            rises(data.path(), &before)
                .map_err(|fallen| format!("{fallen} after a kill at {calls} {nth}"))?;
        }
    }
    Ok(answered)
}

/// Nobody knows what a failed sync left on disk, so nothing is issued until the store is opened anew.
fn stops_issuing_after_a_failed_sync(bug: Option<&str>) -> Result<(), String> {
    let data = tempfile::tempdir().unwrap();
    Server::start(data.path()).stop();
    // The first syncs are those of the folder, when the store is opened.
    let inject = "fsync,fdatasync:error=EIO:when=8+";
    let doomed = Server::start_doomed(data.path(), inject, &planted(bug)).unwrap();
    let before = ask_until_it_dies(&doomed, "counter:before");
    if before.is_empty() || before.len() as u64 == KEYS_MAX {
        return Err(format!("{} counters were begun, and each had to be synced", before.len()));
    }
    let mut client = Client::connect(doomed.port).unwrap();
    for key in 0..10 {
        let answer = client.incr_raw(&format!("counter:after.{key}")).unwrap();
        let is_told =
            answer.starts_with("-ERR store_poisoned: ") && answer.contains("the store issues nothing");
        if !is_told {
            return Err(format!("after a failed sync it answered {answer}"));
        }
    }
    drop(doomed);
    rises(data.path(), &before)
}

/// What each new counter answers, until one does not.
fn ask_until_it_dies(server: &Server, prefix: &str) -> Vec<(String, u64)> {
    let Some(mut client) = Client::connect(server.port) else { return Vec::new() };
    let keys = (0..KEYS_MAX).map(|key| format!("{prefix}.{key}"));
    keys.map_while(|key| Some((client.incr(&key)?, key))).map(|(number, key)| (key, number)).collect()
}

/// A server that is right goes on above what was answered before.
fn rises(data: &Path, before: &[(String, u64)]) -> Result<(), String> {
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
fn killed_within_a_commit_it_repeats_no_number() {
    let answered = repeats_none_when_killed_within_a_commit(None).unwrap();
    assert!(answered >= 10, "{answered} answers between commits");
}

#[test]
fn a_server_that_answers_before_it_commits_is_caught() {
    let caught = repeats_none_when_killed_within_a_commit(Some("answer-before-commit")).unwrap_err();
    assert!(caught.contains("gave 1, and 1 after a kill"), "{caught}");
}

#[test]
fn a_failed_sync_stops_issuing_and_says_so() {
    stops_issuing_after_a_failed_sync(None).unwrap();
}

#[test]
fn a_server_that_does_not_sync_is_caught() {
    let caught = stops_issuing_after_a_failed_sync(Some("skip-sync")).unwrap_err();
    assert!(caught.contains("each had to be synced"), "{caught}");
}

//! Numbers that are rendered ahead of their callers, while servers are killed and stopped: one that was answered never
//! comes again, and one that was not is still unused.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use super::audit::ask_as;
use super::running::{Client, Server};

const SHUFFLED: &str = r#"{"name":"short","pattern":"{seq:base62:6}","order":"shuffled","key":"short"}"#;

/// Pops one by one, and sometimes several, so that numbers ahead are passed over. Returns all that were answered.
fn pop(client: &mut Client, count: usize) -> Vec<String> {
    let mut answered = Vec::new();
    for nth in 0..count {
        let several = if nth % 25 == 7 { 3 } else { 1 };
        if several > 1 {
            assert_eq!(client.send(&["LPOP", "short", "3"]).unwrap(), "*3");
        }
        for of_them in 0..several {
            let header = if several > 1 { client.line() } else { client.send(&["LPOP", "short"]) };
            assert_eq!(header.unwrap(), "$6", "number {of_them} of command {nth}");
            answered.push(client.line().unwrap());
        }
    }
    answered
}

/// Servers on one folder are stopped and killed in turn. Returns how many numbers were answered.
fn check_ends_while_popping(bug: Option<&str>) -> Result<usize, String> {
    let data = tempfile::tempdir().unwrap();
    let environment: Vec<_> = bug.map(|bug| ("BATES_PLANTED_BUG", bug)).into_iter().collect();
    let start = |data: &Path| Server::start_with(data, "127.0.0.1:0", &environment);
    let server = start(data.path());
    Client::connect(server.http).unwrap().post_json("/v1/series", SHUFFLED).unwrap();
    server.stop();
    let mut seen = HashSet::new();
    // Ranges grow: the later servers end in the middle of many numbers.
    for (nth, end) in ["stop", "stop", "kill", "stop", "kill", "stop"].into_iter().enumerate() {
        let server = start(data.path());
        for number in pop(&mut Client::connect(server.port).unwrap(), 333 + 100 * nth) {
            if !seen.insert(number.clone()) {
                return Err(format!("server {nth}, which had to {end}, gave {number} a second time"));
            }
        }
        if end == "stop" { drop(server.stop()) } else { server.kill() }
    }
    Ok(seen.len())
}

#[test]
fn servers_that_are_stopped_and_killed_repeat_no_number_rendered_ahead() {
    let answered = check_ends_while_popping(None).unwrap();
    assert!(answered > 3_000, "{answered} numbers");
}

#[test]
fn a_server_whose_numbers_leave_late_is_caught() {
    let caught = check_ends_while_popping(Some("numbers-leave-late")).unwrap_err();
    assert!(caught.contains("a second time"), "{caught}");
}

#[test]
fn a_number_rendered_ahead_and_not_answered_is_unused_after_a_stop() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    Client::connect(server.http).unwrap().post_json("/v1/series", SHUFFLED).unwrap();
    let answered = pop(&mut Client::connect(server.port).unwrap(), 333).len();
    server.stop();
    let server = Server::start(data.path());
    let (_, scopes) = ask_as(server.http, "", "GET /v1/series/short/scopes", "");
    assert_eq!(scopes["scopes"][0]["cursor"], answered, "the positions begin at 0: {scopes}");
    let (_, gaps) = ask_as(server.http, "", "GET /v1/gaps?series=short", "");
    assert_eq!(gaps["gaps"], Value::Array(Vec::new()), "{gaps}");
}

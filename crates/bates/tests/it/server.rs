//! `bates serve` as a process: numbers for redis-cli, clean stops, and kills under load.

use std::process::Command;

use bates_testkit::history::{Gaps, Rules};

use super::load::Load;
use super::running::Server;

#[test]
fn redis_cli_gets_numbers_of_every_built_in_series() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&data.path().join("data"));
    assert_eq!(server.redis_cli(&["INCR", "seq:conv_abc123"]), "1");
    assert_eq!(server.redis_cli(&["INCR", "seq:conv_abc123"]), "2");
    assert_eq!(server.redis_cli(&["INCRBY", "counter:pages", "10"]), "10");
    let documents = server.redis_cli(&["LPOP", "id-pool:PROJ:9012", "3"]);
    assert_eq!(documents, "PROJ-9012-1001\nPROJ-9012-1002\nPROJ-9012-1003");
    assert_eq!(server.redis_cli(&["LPOP", "short"]).len(), 6);
    let farmer = server.redis_cli(&["LPOP", "farmer"]);
    assert!(farmer.len() == 12 && farmer.bytes().all(|byte| byte.is_ascii_digit()), "{farmer}");
    for (command, answer) in [
        (["GET", "seq:conv_abc123"].as_slice(), "2"),
        (&["GET", "counter:pages"], "10"),
        (&["GET", "counter:never"], ""),
        (&["EXISTS", "counter:pages"], "1"),
        (&["EXISTS", "counter:never"], "0"),
        (&["TYPE", "counter:pages"], "string"),
        (&["TYPE", "id-pool:PROJ:9012"], "list"),
        (&["TYPE", "id-pool:PROJ:1"], "none"),
        (&["LLEN", "counter:never"], "9007199254740991"),
        (&["LLEN", "short"], "56800235583"),
    ] {
        assert_eq!(server.redis_cli(command), answer, "{command:?}");
    }
    assert_eq!(server.redis_cli(&["EXISTS", "counter:never"]), "0", "a read creates no scope");
    for (command, reason) in [
        (["SET", "counter:pages", "1"].as_slice(), "a number is issued once and for all"),
        (&["DEL", "counter:pages"], "a number is issued once and for all"),
        (&["INCR", "short"], "gives texts"),
        (&["INCR", "missing:a"], "no series has a key like"),
        (&["INCRBY", "counter:pages", "99999999999999999999"], "not an integer"),
        (&["INCRBY", "counter:pages", "-1"], "not an integer"),
        (&["INCRBY", "counter:pages", "1000001"], "out of range"),
        (&["LPOP", "id-pool:../:9012"], "no series has a key like"),
        (&["NONSENSE"], "unknown command"),
    ] {
        let answer = server.redis_cli(command);
        assert!(answer.contains(reason), "{command:?}: {answer}");
    }
    assert_eq!(server.redis_cli(&["INCR", "counter:pages"]), "11", "refused commands changed nothing");
}

#[test]
fn redis_commands_of_bates_address_series_by_name() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    for (command, expected) in [
        (["BATES.NEXT", "document", "project", "P", "type", "1"].as_slice(), "P-1-1001"),
        (&["bates.next", "document", "COUNT", "2", "type", "1", "project", "P"], "P-1-1002\nP-1-1003"),
        (
            &["BATES.PEEK", "document", "project", "P", "type", "1"],
            "exists\n1\nlast\n1003\nnext\n1004\nleft\n9007199254739988",
        ),
        (&["BATES.PEEK", "counter", "name", "never"], "exists\n0\nlast\n\nnext\n1\nleft\n9007199254740991"),
        (&["BATES.VALIDATE", "document", "P-1-1001"], "valid\n1\nreasons\n(empty array)"),
        (&["BATES.VALIDATE", "farmer", "123456789012"], "valid\n0\nreasons"),
    ] {
        let answer = server.redis_cli(command);
        assert!(answer.starts_with(expected.trim_end_matches("\n(empty array)")), "{command:?}: {answer}");
    }
    for (command, code) in [
        (["BATES.NEXT", "missing"].as_slice(), "unknown_series"),
        (&["BATES.NEXT", "document", "project", "P"], "bad_scope"),
        (&["BATES.NEXT", "document", "project"], "wrong number of arguments"),
        (&["BATES.NEXT", "short", "count", "0"], "bad_count"),
        (&["BATES.NEXT", "short", "count", "100001"], "bad_count"),
        (&["BATES.NEXT", "short", "date", "31.12.2026"], "bad_date"),
        (&["BATES.VALIDATE", "missing", "x"], "unknown_series"),
        (&["INCR", "missing:a"], "bad_key"),
        (&["INCR", "short"], "WRONGTYPE not_a_count"),
    ] {
        let answer = server.redis_cli(command);
        assert!(answer.contains(code), "{command:?}: {answer}");
    }
}

#[test]
fn a_clean_stop_loses_no_number() {
    let data = tempfile::tempdir().unwrap();
    for first in [1, 4, 7] {
        let server = Server::start(data.path());
        for expected in first..first + 3 {
            assert_eq!(server.redis_cli(&["INCR", "counter:a"]), expected.to_string());
        }
        let stderr = server.stop();
        assert!(stderr.contains("29 unused numbers given back, 0 gaps left"), "{stderr}");
    }
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let _server = Server::start(data.path());
    let second = Command::new(env!("CARGO_BIN_EXE_bates"))
        .args(["serve", "--http", "off", "--resp", "127.0.0.1:0", "--data"])
        .arg(data.path())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use by another process"));
}

/// Eight clients take numbers without a pause, over both protocols, while the server is killed and restarted.
#[test]
fn a_server_killed_again_and_again_repeats_no_number_and_keeps_the_order() {
    const KILLS: u64 = 30;
    let data = tempfile::tempdir().unwrap();
    let load = Load::begin(8, 400);
    for kill in 0..KILLS {
        let server = Server::start(data.path());
        load.ask(&server);
        // Counts answers rather than time, so that every kill comes amid requests.
        load.wait_for(300 + 97 * kill);
        server.kill();
    }
    let history = load.end();
    // A kill skips the rest of a key's first range, or of a second one, eight times as large, if the machine was slow
    // to kill: a key has less than a dozen requests between two kills.
    let gaps = Gaps::AtMost { start: 1, skipped_max: KILLS * (32 + 256) };
    assert_eq!(history.check(Rules { is_ordered: true, gaps }), []);
    assert!(history.len() > 9_000, "{} answers", history.len());
}

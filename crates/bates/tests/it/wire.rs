//! Valid and invalid bytes of the Redis protocol, sent to a running server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

use bates_testkit::programs;

use super::running::{Client, Server};

/// Sends bytes, closes its side, and returns everything that the server sends until it closes.
pub(crate) fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    // Some keys are in memory, others wait for the store.
    let commands: Vec<String> =
        (0..500).map(|n| format!("INCR counter:{}\r\nPING {n}\r\n", n % 50)).collect();
    let expected: Vec<String> =
        (0..500).map(|n| format!(":{}\r\n${}\r\n{n}\r\n", n / 50 + 1, n.to_string().len())).collect();
    assert_eq!(exchange(&server, commands.concat().as_bytes()), expected.concat());
}

#[test]
fn new_scopes_in_a_pipeline_share_commits_and_each_begins_at_its_start() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let request = |n: u32| format!("INCR counter:{n}\r\nINCR counter:{n}\r\nLPOP id-pool:P:{n}\r\n");
    let answer = |n: u32| {
        let id = format!("P-{n}-1001");
        format!(":1\r\n:2\r\n${}\r\n{id}\r\n", id.len())
    };
    let commands: Vec<String> = (0..3_000).map(request).collect();
    let expected: Vec<String> = (0..3_000).map(answer).collect();
    assert_eq!(exchange(&server, commands.concat().as_bytes()), expected.concat());
    // Reading ahead in a pipeline creates no scope for a command that is refused or never runs.
    let refused = b"INCR counter:x\r\nLPOP id-pool:Z:1 0\r\nLPOP id-pool:Z:2 x\r\nLPOP id-pool:Z:3 100001\r\nINCR id-pool:Z:4\r\nQUIT\r\nINCR counter:behind\r\n";
    assert!(exchange(&server, refused).starts_with(":1\r\n*0\r\n-ERR"));
    for key in ["counter:behind", "id-pool:Z:1", "id-pool:Z:2", "id-pool:Z:3", "id-pool:Z:4"] {
        assert_eq!(server.redis_cli(&["EXISTS", key]), "0", "{key}");
    }
    let bad =
        exchange(&server, b"INCR counter:new\r\nLPOP id-pool:../:1\r\nLPOP id-pool:P\r\nINCR short\r\n");
    assert!(bad.starts_with(":1\r\n-ERR bad_key") && bad.contains("WRONGTYPE not_a_count"), "{bad}");
    let stderr = server.stop();
    assert!(stderr.contains(" 0 gaps left"), "{stderr}");
}

#[test]
fn new_scopes_in_a_pipeline_or_a_transaction_share_writes_to_the_disk() {
    const SCOPES: usize = 500;
    let data = tempfile::tempdir().unwrap();
    let trace = data.path().join("trace");
    let mut command = Command::new(programs::find("strace").expect("strace; run `cargo xtask test`"));
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]).arg(&trace);
    command.arg(env!("CARGO_BIN_EXE_bates"));
    let server = Server::try_start(command, &data.path().join("data"), "127.0.0.1:0").unwrap();
    let commands = |of: &str, rest: &str| -> String {
        let lines: Vec<String> = (0..SCOPES).map(|at| format!("{of}{at}{rest}\r\n")).collect();
        lines.concat()
    };
    let pipelines = [
        commands("INCR counter:a", ""),
        // As redis-py sends `incr`.
        commands("INCRBY counter:b", " 1"),
        format!("MULTI\r\n{}EXEC\r\n", commands("INCRBY counter:c", " 1")),
        format!("MULTI\r\n{}EXEC\r\n", commands("LPOP id-pool:P:", "")),
    ];
    for pipeline in pipelines {
        let answer = exchange(&server, pipeline.as_bytes());
        let numbers = answer.lines().filter(|line| *line == ":1" || line.ends_with("-1001")).count();
        assert_eq!(numbers, SCOPES, "{answer}");
    }
    // strace would not pass a signal on.
    server.kill();
    let syncs = std::fs::read_to_string(trace).unwrap().matches("sync(").count();
    assert!(syncs > 0 && syncs < SCOPES / 2, "{syncs} syncs for four times {SCOPES} scopes");
}

#[test]
fn protocol_errors_close_the_connection_and_command_errors_do_not() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    for (bytes, expected) in [
        ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nPING\r\n", ""),
        ("Host: localhost\r\nPING\r\n", ""),
        ("PING x\r\nPOST /\r\nPING\r\n", "$1\r\nx\r\n"),
        ("*2147483647\r\nPING\r\n", "-ERR Protocol error: invalid multibulk length"),
        ("*1\r\n$-1\r\nPING\r\n", "-ERR Protocol error: invalid bulk length"),
        ("*1\r\n$abc\r\nPING\r\n", "-ERR Protocol error: invalid bulk length"),
        ("*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'"),
        ("*1\r\n$524289\r\nPING\r\n", "-ERR Protocol error: invalid bulk length"),
    ] {
        let answer = exchange(&server, bytes.as_bytes());
        assert!(answer.starts_with(expected) && !answer.contains("PONG"), "{bytes:?}: {answer:?}");
        assert_eq!(answer.is_empty(), expected.is_empty(), "{bytes:?}: {answer:?}");
    }
    let long = format!("PING {}\r\nPING\r\n", "x".repeat(70_000));
    let answer = exchange(&server, long.as_bytes());
    assert!(
        answer.starts_with("-ERR Protocol error: too big inline request") && !answer.contains("PONG"),
        "{answer:?}"
    );
    let open = exchange(&server, b"NONSENSE\r\nINCR\r\nPING a b c\r\nSELECT 9\r\nHELLO 4\r\nPING\r\n");
    assert_eq!(open.matches("-ERR").count(), 4, "{open}");
    assert!(open.contains("-NOPROTO") && open.ends_with("+PONG\r\n"), "{open}");
    assert_eq!(exchange(&server, b"PING\r\nQUIT\r\nPING\r\n"), "+PONG\r\n+OK\r\n", "nothing after QUIT");
}

#[test]
fn client_input_cannot_forge_an_answer() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let name = "x\r\n+OK\r\n";
    let answer = exchange(&server, format!("*1\r\n${}\r\n{name}\r\n", name.len()).as_bytes());
    assert_eq!(answer.matches("\r\n").count(), 1, "{answer:?}");
    let answer = exchange(&server, format!("*2\r\n$4\r\nINCR\r\n${}\r\n{name}\r\n", name.len()).as_bytes());
    assert_eq!(answer.matches("\r\n").count(), 1, "{answer:?}");
}

#[test]
fn hello_3_switches_the_connection_to_resp3() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let answer =
        exchange(&server, b"HELLO 3\r\nCLIENT SETINFO LIB-NAME x\r\nGET counter:never\r\nINCR counter:a\r\n");
    assert!(answer.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nbates\r\n"), "{answer:?}");
    assert!(answer.ends_with("+OK\r\n_\r\n:1\r\n"), "{answer:?}");
}

#[test]
fn a_client_that_reads_nothing_does_not_block_others() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let mut greedy = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    greedy.set_nonblocking(true).unwrap();
    // Writes until the buffers of both sides are full.
    let request = "LPOP short 10000\r\n".repeat(100);
    while greedy.write(request.as_bytes()).is_ok() {}
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.incr("counter:a"), Some(1));
}

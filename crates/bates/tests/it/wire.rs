//! What comes over the wire, good and bad, to a running server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::running::{Client, Server};

/// Sends bytes, closes its own side, and answers with all that the server says until it closes.
fn talk(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    // A server that closes early may not take everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn a_pipeline_is_answered_in_its_order() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    // Keys that are held and keys that have to wait for the store, in turn.
    let commands: Vec<String> =
        (0..500).map(|n| format!("INCR counter:{}\r\nPING {n}\r\n", n % 50)).collect();
    let expected: Vec<String> =
        (0..500).map(|n| format!(":{}\r\n${}\r\n{n}\r\n", n / 50 + 1, n.to_string().len())).collect();
    assert_eq!(talk(&server, commands.concat().as_bytes()), expected.concat());
}

#[test]
fn new_scopes_of_a_pipeline_share_commits_and_each_begins_at_one() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let asked = |n: u32| format!("INCR counter:{n}\r\nINCR counter:{n}\r\nLPOP id-pool:P:{n}\r\n");
    let answered = |n: u32| {
        let id = format!("P-{n}-1001");
        format!(":1\r\n:2\r\n${}\r\n{id}\r\n", id.len())
    };
    let commands: Vec<String> = (0..3_000).map(asked).collect();
    let expected: Vec<String> = (0..3_000).map(answered).collect();
    assert_eq!(talk(&server, commands.concat().as_bytes()), expected.concat());
    // What will be refused, or not run at all, is not begun by looking ahead.
    let refused = b"INCR counter:x\r\nLPOP id-pool:Z:1 0\r\nLPOP id-pool:Z:2 x\r\nLPOP id-pool:Z:3 100001\r\nINCR id-pool:Z:4\r\nQUIT\r\nINCR counter:behind\r\n";
    assert!(talk(&server, refused).starts_with(":1\r\n*0\r\n-ERR"));
    for key in ["counter:behind", "id-pool:Z:1", "id-pool:Z:2", "id-pool:Z:3", "id-pool:Z:4"] {
        assert_eq!(server.redis_cli(&["EXISTS", key]), "0", "{key}");
    }
    let bad = talk(&server, b"INCR counter:new\r\nLPOP id-pool:../:1\r\nLPOP id-pool:P\r\nINCR short\r\n");
    assert!(bad.starts_with(":1\r\n-ERR bad_key") && bad.contains("WRONGTYPE not_a_count"), "{bad}");
    let said = server.stop();
    assert!(said.contains(" 0 gaps left"), "{said}");
}

#[test]
fn what_breaks_the_protocol_is_answered_and_closed_and_what_is_unknown_stays_open() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    for (bytes, answer) in [
        ("POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", ""),
        ("Host: x\r\nPING\r\n", ""),
        ("PING x\r\nPOST /\r\nPING\r\n", "$1\r\nx\r\n"),
        ("*2147483647\r\nPING\r\n", "-ERR Protocol error: invalid multibulk length"),
        ("*1\r\n$-1\r\nPING\r\n", "-ERR Protocol error: invalid bulk length"),
        ("*1\r\n$abc\r\nPING\r\n", "-ERR Protocol error: invalid bulk length"),
        ("*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'"),
        ("*1\r\n$524289\r\nPING\r\n", "-ERR Protocol error: invalid bulk length"),
    ] {
        let said = talk(&server, bytes.as_bytes());
        assert!(said.starts_with(answer) && !said.contains("PONG"), "{bytes:?}: {said:?}");
        assert_eq!(said.is_empty(), answer.is_empty(), "{bytes:?}: {said:?}");
    }
    let long = format!("PING {}\r\nPING\r\n", "x".repeat(70_000));
    let said = talk(&server, long.as_bytes());
    assert!(
        said.starts_with("-ERR Protocol error: too big inline request") && !said.contains("PONG"),
        "{said:?}"
    );
    let open = talk(&server, b"NONSENSE\r\nINCR\r\nPING a b c\r\nSELECT 9\r\nHELLO 4\r\nPING\r\n");
    assert_eq!(open.matches("-ERR").count(), 4, "{open}");
    assert!(open.contains("-NOPROTO") && open.ends_with("+PONG\r\n"), "{open}");
    assert_eq!(talk(&server, b"PING\r\nQUIT\r\nPING\r\n"), "+PONG\r\n+OK\r\n", "nothing after QUIT");
}

#[test]
fn an_answer_cannot_be_forged_by_what_a_client_sends() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let name = "x\r\n+OK\r\n";
    let said = talk(&server, format!("*1\r\n${}\r\n{name}\r\n", name.len()).as_bytes());
    assert_eq!(said.matches("\r\n").count(), 1, "{said:?}");
    let said = talk(&server, format!("*2\r\n$4\r\nINCR\r\n${}\r\n{name}\r\n", name.len()).as_bytes());
    assert_eq!(said.matches("\r\n").count(), 1, "{said:?}");
}

#[test]
fn resp3_is_spoken_when_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let said =
        talk(&server, b"HELLO 3\r\nCLIENT SETINFO LIB-NAME x\r\nGET counter:never\r\nINCR counter:a\r\n");
    assert!(said.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nbates\r\n"), "{said:?}");
    assert!(said.ends_with("+OK\r\n_\r\n:1\r\n"), "{said:?}");
}

#[test]
fn a_client_that_reads_nothing_holds_up_nobody_else() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let mut greedy = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    greedy.set_nonblocking(true).unwrap();
    // Until neither side takes any more.
    let request = "LPOP short 10000\r\n".repeat(100);
    while greedy.write(request.as_bytes()).is_ok() {}
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.incr("counter:a"), Some(1));
}

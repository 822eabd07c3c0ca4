//! Clients that send too much or too slowly or never read, and counters that reach their end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use super::port::{Port, nearly_exhausted, settings};

/// Short enough for a test, and far longer than the pause between two bytes.
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_command_that_arrives_too_slowly_closes_the_connection() {
    let port = Port::open_with(
        bates_server::resp::Settings { command_timeout: SHORT, ..settings(None) },
        Arc::default(),
    );
    let mut stream = port.connect();
    // The client waits this long for an answer before it sends the next byte.
    stream.set_read_timeout(Some(SHORT / 10)).unwrap();
    let command = format!("*2\r\n$4\r\nECHO\r\n$1000\r\n{}\r\n", "x".repeat(1_000));
    let (mut answers, mut closed) = (Vec::new(), false);
    for byte in command.bytes() {
        closed = stream.write_all(&[byte]).is_err()
            || match stream.read(&mut [0; 1]) {
                Ok(read) => {
                    answers.push(read);
                    true
                }
                Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            };
        if closed {
            break;
        }
    }
    assert!(closed && answers.iter().all(|read| *read == 0), "closed without an answer: {answers:?}");
}

#[test]
fn a_client_that_is_silent_between_commands_stays_connected() {
    let port = Port::open_with(
        bates_server::resp::Settings { command_timeout: SHORT / 10, ..settings(None) },
        Arc::default(),
    );
    let (mut silent, mut slow) = (port.connect(), port.connect());
    silent.write_all(b"PING\r\n").unwrap();
    silent.read_exact(&mut [0; 7]).unwrap();
    // The end of another connection, which sent half a command, shows that the timeout has passed.
    slow.write_all(b"*1\r\n$4\r\nPI").unwrap();
    assert_eq!(slow.read(&mut [0; 1]).unwrap(), 0);
    silent.write_all(b"PING\r\n").unwrap();
    silent.read_exact(&mut [0; 7]).unwrap();
}

#[test]
fn a_pipeline_that_is_never_read_is_capped_and_closed() {
    let port = Port::open_with(
        bates_server::resp::Settings { write_timeout: SHORT, ..settings(None) },
        Arc::default(),
    );
    let mut greedy = port.connect();
    greedy.set_nonblocking(true).unwrap();
    let request = "LPOP text 10000\r\n".repeat(100);
    // Ends only because the server reads no more: the answers that it buffers are capped.
    while greedy.write(request.as_bytes()).is_ok() {}
    greedy.set_nonblocking(false).unwrap();
    // Ends only because the server closes the connection.
    while greedy.write(request.as_bytes()).is_ok() {}
    assert_eq!(port.talk(b"INCR counter:a\r\n"), ":1\r\n", "another client is still served");
}

#[test]
fn an_argument_of_512_kib_is_accepted_and_a_longer_one_closes_the_connection() {
    let port = Port::open();
    let most = format!("*2\r\n$4\r\nECHO\r\n$524288\r\n{}\r\nPING\r\n", "x".repeat(524_288));
    assert!(port.talk(most.as_bytes()).ends_with("x\r\n+PONG\r\n"));
    let answer = port.talk(b"*2\r\n$4\r\nECHO\r\n$524289\r\nPING\r\n");
    assert_eq!(answer, "-ERR Protocol error: invalid bulk length: the limit is 524288\r\n");
}

#[test]
fn an_exhausted_counter_answers_an_error_and_never_wraps() {
    let port = Port::open_with(settings(None), nearly_exhausted(3));
    assert_eq!(port.talk(b"INCR counter:a\r\n"), format!(":{}\r\n", (1_u64 << 53) - 3));
    let ended = port.talk(
        b"INCRBY counter:a 3\r\nINCR counter:a\r\nINCR counter:a\r\nINCR counter:a\r\nINCR counter:a\r\n",
    );
    let lines: Vec<&str> = ended.lines().collect();
    assert!(lines[0].starts_with("-ERR exhausted: "), "a partial increment is refused: {ended}");
    assert_eq!(lines[1..3], [":9007199254740990", ":9007199254740991"], "{ended}");
    assert!(lines[3..].iter().all(|line| line.starts_with("-ERR exhausted: ")), "{ended}");
    assert_eq!(port.talk(b"GET counter:a\r\nLLEN counter:a\r\n"), "$16\r\n9007199254740991\r\n:0\r\n");
    assert!(
        port.talk(b"LPOP tiny 10\r\n").starts_with("*9\r\n$1\r\n1\r\n"),
        "LPOP gets the remaining numbers"
    );
    assert!(port.talk(b"LPOP tiny\r\n").starts_with("-ERR exhausted: "));
}

#[test]
fn an_increment_that_is_not_a_small_positive_integer_is_refused_and_takes_nothing() {
    let port = Port::open();
    for increment in [
        "99999999999999999999",
        "9223372036854775808",
        "-1",
        "0",
        "1.5",
        "1e3",
        " 1",
        "\"\"",
        "abc",
        "1000001",
    ] {
        let answer = port.talk(
            format!("INCRBY counter:a {}\r\n", if increment == " 1" { "\" 1\"" } else { increment })
                .as_bytes(),
        );
        assert!(answer.starts_with("-ERR value is "), "{increment}: {answer}");
    }
    assert_eq!(port.talk(b"INCR counter:a\r\n"), ":1\r\n");
}

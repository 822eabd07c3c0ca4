//! `MULTI` and `EXEC`: the answers are compared with a real Redis.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use bates_testkit::PrivateRedis;

use super::port::{Port, nearly_exhausted, settings};

/// All that Redis answers to the lines.
fn ask_redis(redis: &PrivateRedis, lines: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    stream.write_all(lines.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_transaction_is_answered_as_redis_answers_it() {
    let (port, redis) = (Port::open(), PrivateRedis::start().unwrap());
    for lines in [
        "MULTI|INCR counter:a|INCRBY counter:b 5|GET counter:a|GET counter:none|ECHO x|EXEC",
        "MULTI|EXEC|PING",
        "MULTI|INCR counter:a|DISCARD|INCR counter:a",
        "MULTI|MULTI|INCR counter:a|EXEC",
        "MULTI|WATCH counter:a|INCR counter:a|EXEC",
        "MULTI|INCR counter:a|INCR|INCR counter:a|EXEC|INCR counter:a",
        "MULTI|INCR|DISCARD|MULTI|INCR counter:a|EXEC",
        "MULTI|INCRBY counter:a x|INCR counter:a|EXEC",
        "MULTI|INCR counter:a|EXEC x|EXEC|INCR counter:a",
        "MULTI|DISCARD x|EXEC",
        "MULTI x|INCR counter:a|EXEC",
        "EXEC|DISCARD|UNWATCH|PING",
        "MULTI|UNWATCH|SELECT 0|PING|PING x|CLIENT GETNAME|EXEC",
        "MULTI|INCR counter:c|RESET|INCR counter:c|EXEC",
        "MULTI|INCR counter:c|QUIT|EXEC",
        "multi|\"incr\" \"counter:quoted\"|exec",
        "MULTI|INCR counter:c",
        "INCR counter:c|MULTI|INCR counter:d|EXEC|INCR counter:d|MULTI|INCR counter:d|EXEC",
    ] {
        let lines = format!("{}\r\n", lines.replace('|', "\r\n"));
        assert_eq!(port.talk(lines.as_bytes()), ask_redis(&redis, &lines), "{lines}");
    }
}

#[test]
fn nulls_in_a_transaction_have_the_type_of_the_protocol_version() {
    let port = Port::open();
    let lines = "MULTI\r\nGET counter:none\r\nCLIENT GETNAME\r\nEXEC\r\n";
    assert!(port.talk(lines.as_bytes()).ends_with("*2\r\n$-1\r\n$-1\r\n"));
    assert!(port.talk(format!("HELLO 3\r\n{lines}").as_bytes()).ends_with("*2\r\n_\r\n_\r\n"));
}

#[test]
fn a_refused_command_discards_the_transaction_and_takes_no_number() {
    let port = Port::open();
    for (refused, sentence) in [
        ("NONSENSE", "unknown command 'NONSENSE'"),
        ("SET counter:a 1", "SET would set numbers"),
        ("AUTH x", "AUTH is not allowed inside MULTI: send it before"),
        ("HELLO 3", "HELLO is not allowed inside MULTI: send it before"),
    ] {
        let lines = format!("MULTI\r\nINCR counter:a\r\n{refused}\r\nINCR counter:a\r\nEXEC\r\nPING\r\n");
        let answer = port.talk(lines.as_bytes());
        assert!(answer.starts_with("+OK\r\n+QUEUED\r\n-ERR "), "{answer}");
        assert!(answer.contains(sentence), "{answer}");
        let end = "+QUEUED\r\n-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n";
        assert!(answer.ends_with(end), "{answer}");
    }
    assert_eq!(port.talk(b"INCR counter:a\r\n"), ":1\r\n");
}

#[test]
fn an_error_of_one_command_is_an_element_of_the_answer() {
    let port = Port::open_with(settings(None), nearly_exhausted(1));
    let lines = "MULTI\r\nINCR text\r\nINCR counter:a\r\nINCR counter:a\r\nLPOP counter:b\r\nEXEC\r\n";
    let answer = port.talk(lines.as_bytes());
    let elements: Vec<&str> = answer.split("\r\n").skip(5).collect();
    assert_eq!(elements[0], "*4", "{answer}");
    assert!(elements[1].starts_with("-WRONGTYPE not_a_count"), "{answer}");
    assert!(elements[2].starts_with(':') && elements[3].starts_with("-ERR exhausted"), "{answer}");
    assert_eq!(elements[4..], ["$1", "1", ""], "the command after an error is executed: {answer}");
}

#[test]
fn numbers_in_a_transaction_come_in_order_from_memory_and_from_the_store() {
    let port = Port::open();
    // New scopes wait for the store; the second number of each is in memory.
    let commands: Vec<String> = (0..3_000).map(|at| format!("INCR counter:{}\r\n", at / 2)).collect();
    let answer = port.talk(format!("MULTI\r\n{}EXEC\r\nPING\r\n", commands.concat()).as_bytes());
    let expected = ":1\r\n:2\r\n".repeat(1_500);
    let queued = "+QUEUED\r\n".repeat(3_000);
    assert_eq!(answer, format!("+OK\r\n{queued}*3000\r\n{expected}+PONG\r\n"));
}

#[test]
fn commands_that_are_queued_or_dropped_create_no_scope() {
    let port = Port::open();
    let dropped =
        "INCR counter:new\r\nMULTI\r\nINCR counter:behind\r\nDISCARD\r\nMULTI\r\nINCR counter:open\r\n";
    assert_eq!(port.talk(dropped.as_bytes()), ":1\r\n+OK\r\n+QUEUED\r\n+OK\r\n+OK\r\n+QUEUED\r\n");
    assert_eq!(port.talk(b"EXISTS counter:behind\r\nEXISTS counter:open\r\n"), ":0\r\n:0\r\n");
}

#[test]
fn a_large_answer_is_written_piece_by_piece() {
    let port = Port::open();
    let commands = "LPOP text 10000\r\n".repeat(99);
    let answer = port.talk(format!("MULTI\r\n{commands}EXEC\r\nPING\r\n").as_bytes());
    assert_eq!(answer.matches("*10000\r\n").count(), 99);
    assert!(answer.contains("$8\r\nT-990000\r\n") && answer.ends_with("+PONG\r\n"));
}

#[test]
fn a_transaction_beyond_its_limits_is_discarded() {
    let port = Port::open();
    let answer = port.talk(format!("MULTI\r\n{}EXEC\r\nPING\r\n", "PING\r\n".repeat(65_537)).as_bytes());
    assert_eq!(answer.matches("+QUEUED").count(), 65_536);
    assert!(answer.contains("-ERR a transaction can hold at most 65536 commands"), "{answer:.200}");
    assert!(answer.ends_with("-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n"));
}

#[test]
fn watch_is_refused_and_unwatch_is_not() {
    let answer = Port::open().talk(b"WATCH counter:a\r\nUNWATCH\r\nMULTI\r\nINCR counter:a\r\nEXEC\r\n");
    assert!(answer.starts_with("-ERR WATCH is not supported"), "{answer}");
    assert!(answer.ends_with("+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"), "{answer}");
}

#[test]
fn a_server_that_stops_during_exec_answers_each_command_and_executes_no_more() {
    const COMMANDS: usize = 500;
    let port = Port::open();
    let mut stream = BufReader::new(port.connect());
    // Far more than the buffers of the sockets hold.
    let commands = "LPOP counter:a 10000\r\n".repeat(COMMANDS);
    stream.get_mut().write_all(format!("MULTI\r\n{commands}EXEC\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    while line != "*10000\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        rest
    });
    drop(port);
    let rest = rest.join().unwrap();
    let (executed, refused) =
        (rest.matches("*10000\r\n").count() + 1, rest.matches("-ERR stopping: ").count());
    assert_eq!(executed + refused, COMMANDS);
    assert!(refused > COMMANDS / 2, "{refused} commands were refused");
}

//! The reader compared with a real Redis: both get the same bytes, and the answers of Redis show what it
//! read.
//!
//! A command that Redis does not know is answered with its name and arguments, so commands of that kind make
//! the two transcripts comparable byte for byte.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use bates_server::resp::Limits;
use bates_testkit::PrivateRedis;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::claims::{Args, Outcome, read_chunks};

/// All that Redis answers to the bytes before either side closes the connection.
fn ask_redis(server: &PrivateRedis, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    // Redis may close before we have written or read everything; its answer until then counts.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer.escape_ascii().to_string()
}

/// The answer that Redis would give to the commands that our reader reads.
fn expected_answer(bytes: &[u8]) -> String {
    expected_answer_under(Limits::AUTHENTICATED, bytes)
}

fn expected_answer_under(limits: Limits, bytes: &[u8]) -> String {
    let Outcome { commands, end } = read_chunks(limits, [bytes]);
    let mut answer: Vec<u8> = commands.iter().flat_map(unknown_command).collect();
    if let Err(error) = end
        && error.is_answered()
    {
        // Redis has the same sentence, but without the limit at its end.
        let sentence = error.to_string();
        let sentence = sentence.split(": the limit").next().unwrap();
        answer.extend_from_slice(format!("-ERR {sentence}\r\n").as_bytes());
    }
    answer.escape_ascii().to_string()
}

fn unknown_command(args: &Args) -> Vec<u8> {
    let mut line = b"-ERR unknown command '".to_vec();
    // Redis prints a C string: a zero byte ends it.
    let shown = |arg: &Vec<u8>| arg.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    line.extend(shown(&args[0]));
    line.extend_from_slice(b"', with args beginning with: ");
    for arg in &args[1..] {
        line.extend_from_slice(&[b"'", &shown(arg)[..], b"' "].concat());
    }
    for byte in line.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')) {
        *byte = b' ';
    }
    [&line[..], b"\r\n"].concat()
}

/// Sent to both, followed by a good command, which shows whether the connection is still open.
const SAME: [&[u8]; 62] = [
    b"*1\r\n$3\r\nFOO\r\n",
    b"*2\r\n$3\r\nFOO\r\n$0\r\n\r\n",
    b"*2\r\n$3\r\nFOO\r\n$4\r\na\r\nb\r\n",
    b"*2\r\n$3\r\nFOO\r\n$12\r\n\xff\x80abcdefghij\r\n",
    b"*1\r\n$0\r\n\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-7\r\n",
    b"\r\n",
    b"\n",
    b"  \r\n",
    b"\t\x0b\x0c\r\r\n",
    b"FOO\n",
    b"FOO a b\r\n",
    b" FOO  a\t\tb \r\n",
    b"FOO a\rb\r\n",
    b"FOO a\x0bb\r\n",
    b"FOO \"a\"\x0bb\r\n",
    b"\x0bFOO\r\n",
    b"FOO \"a b\"\r\n",
    b"FOO 'a b'\r\n",
    b"FOO \"\" ''\r\n",
    b"FOO \"\\x41\\x7a\\xFf\\xg0\\x4\"\r\n",
    b"FOO \"\\n\\r\\t\\b\\a\\\\\\\"\\q\"\r\n",
    b"FOO 'a\\'b\\n\\\\'\r\n",
    b"FOO a\"b c\"\r\n",
    b"FOO a'b c'\r\n",
    b"FOO a\\nb\r\n",
    b"\"FOO\" a\r\n",
    b"$4\r\n",
    b":1\r\n",
    b"FOO \"a\r\n",
    b"FOO 'a\r\n",
    b"FOO \"a\"b\r\n",
    b"FOO 'a''b'\r\n",
    b"FOO \"a\\\"\r\n",
    b"FOO 'a\\'\r\n",
    b"*abc\r\n",
    b"*+1\r\n",
    b"*01\r\n",
    b"*-0\r\n",
    b"*\r\n",
    b"* 1\r\n",
    b"*1 \r\n",
    b"*1\n$3\r\n",
    b"*2147483648\r\n",
    b"*99999999999999999999\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$abc\r\n",
    b"*1\r\n$+3\r\nFOO\r\n",
    b"*1\r\n$03\r\nFOO\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n$3 \r\nFOO\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$99999999999999999999\r\n",
    b"*1\r\n*1\r\n$3\r\nFOO\r\n",
    b"*1\r\n:1\r\n",
    b"*2\r\n$3\r\nFOO\r\n+x\r\n",
    b"*1\r\nFOO\r\n",
    b"POST / HTTP/1.1\r\n",
    b" post\r\n",
    b"host: example.org\r\n",
];

/// Intended differences: the reason, the bytes, the answer of Redis, our answer.
const DIFFERENT: [(&str, &[u8], &str, &str); 9] = [
    (
        "Redis skips the two bytes after an argument unchecked; after a wrong length it reads other commands",
        b"*1\r\n$3\r\nFOOxx",
        "-ERR unknown command 'FOO', with args beginning with: \\r\\n",
        "-ERR Protocol error: expected CRLF after an argument\\r\\n",
    ),
    (
        "Redis skips the byte after CR in a length unchecked",
        b"*1\rx$3\rxFOO\r\n",
        "-ERR unknown command 'FOO', with args beginning with: \\r\\n",
        "-ERR Protocol error: invalid multibulk length\\r\\n",
    ),
    (
        "Redis waits for 2 Gi arguments",
        b"*2147483647\r\n",
        "",
        "-ERR Protocol error: invalid multibulk length\\r\\n",
    ),
    (
        "Redis accepts arguments of 512 MiB",
        b"*1\r\n$524289\r\n",
        "",
        "-ERR Protocol error: invalid bulk length\\r\\n",
    ),
    (
        "Redis checks a length only when its line is complete",
        b"*1\r\n$abc",
        "",
        "-ERR Protocol error: invalid bulk length\\r\\n",
    ),
    (
        "Redis takes a zero byte for the end of its input, and waits",
        b"FOO \0\r\n",
        "",
        "-ERR Protocol error: zero byte in inline request; is this TLS?\\r\\n",
    ),
    (
        "Redis recognizes `Host:` only as a separate word",
        b"Host:x\r\n",
        "-ERR unknown command 'Host:x', with args beginning with: \\r\\n",
        "",
    ),
    (
        "Redis looks for HTTP in arrays too, which no browser can send; Bates sees an unknown command",
        b"*1\r\n$4\r\nPOST\r\n",
        "",
        "-ERR unknown command 'POST', with args beginning with: \\r\\n",
    ),
    (
        "an unprintable byte is shown escaped",
        b"*1\r\n\rx",
        "-ERR Protocol error: expected '$', got ' '\\r\\n",
        "-ERR Protocol error: expected \\'$\\', got \\'\\\\r\\'\\r\\n",
    ),
];

#[test]
fn unusual_bytes_are_read_as_redis_reads_them() {
    let server = PrivateRedis::start().unwrap();
    for bytes in SAME {
        let sent = [bytes, b"*2\r\n$3\r\nBAR\r\n$4\r\nopen\r\n"].concat();
        let shown = sent.escape_ascii().to_string();
        assert_eq!(expected_answer(&sent), ask_redis(&server, &sent), "{shown}");
    }
}

#[test]
fn the_reader_differs_from_redis_only_where_intended() {
    let server = PrivateRedis::start().unwrap();
    for (reason, bytes, redis, ours) in DIFFERENT {
        assert_eq!(ask_redis(&server, bytes).replace("\\'", "'"), redis, "Redis: {reason}");
        assert_eq!(expected_answer(bytes).replace("\\'", "'"), ours.replace("\\'", "'"), "Bates: {reason}");
    }
}

#[test]
fn any_line_is_split_into_words_as_redis_splits_it() {
    let server = PrivateRedis::start().unwrap();
    let byte = proptest::sample::select(&b"ab \t\r\x0b\"\"\"''\\\\xn41fF\x80"[..]);
    let line = proptest::collection::vec(byte, 0..16);
    let mut runner = TestRunner::new(ProptestConfig { cases: 2_000, ..ProptestConfig::default() });
    let result = runner.run(&line, |line| {
        let sent = [b"FOO ", &line[..], b"\r\n*1\r\n$4\r\nOPEN\r\n"].concat();
        prop_assert_eq!(expected_answer(&sent), ask_redis(&server, &sent));
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_line_is_limited_to_64_kib_as_in_redis() {
    let server = PrivateRedis::start().unwrap();
    let too_long = vec![b'x'; 65_537];
    assert_eq!(expected_answer(&too_long), ask_redis(&server, &too_long));
    assert_eq!(expected_answer(&too_long[1..]), ask_redis(&server, &too_long[1..]));
}

#[test]
fn an_unauthenticated_client_has_the_limits_that_redis_sets() {
    let server = PrivateRedis::start().unwrap();
    assert_eq!(ask_redis(&server, b"CONFIG SET requirepass secret\r\n"), "+OK\\r\\n");
    for bytes in [&b"*11\r\n"[..], b"*10\r\n", b"*1\r\n$16385\r\n", b"*1\r\n$16384\r\n"] {
        let ours = expected_answer_under(Limits::UNAUTHENTICATED, bytes);
        assert_eq!(ours, ask_redis(&server, bytes), "{}", bytes.escape_ascii());
    }
}

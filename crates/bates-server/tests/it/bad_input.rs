//! Bad input gets a clear error and closes the connection; commands before it take effect.

use bates_server::resp::{Limits, ProtocolError};

use super::claims::{Outcome, encode, read_chunks};

/// The error that the bytes cause after a good command, read whole and byte by byte.
fn refusal_under(limits: Limits, bytes: &[u8]) -> ProtocolError {
    let sent = [b"*1\r\n$4\r\nPING\r\n", bytes].concat();
    let whole = read_chunks(limits, [&sent[..]]);
    let Outcome { commands, end: Err(error) } = &whole else {
        panic!("{:?} is not refused: {whole:?}", bytes.escape_ascii().to_string())
    };
    assert_eq!(*commands, [[b"PING"]], "only the command before the bad bytes is read");
    assert_eq!(read_chunks(limits, sent.chunks(1)), whole, "byte by byte");
    *error
}

fn refusal(bytes: &[u8]) -> ProtocolError {
    refusal_under(Limits::AUTHENTICATED, bytes)
}

/// The outcome of bytes, read whole and byte by byte.
fn outcome(bytes: &[u8]) -> Outcome {
    let whole = read_chunks(Limits::AUTHENTICATED, [bytes]);
    assert_eq!(read_chunks(Limits::AUTHENTICATED, bytes.chunks(1)), whole, "byte by byte");
    whole
}

#[test]
fn http_closes_the_connection_before_its_line_is_complete() {
    for bytes in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nINCR a\r\n",
        "POST ",
        "post /x",
        "Host:",
        "HOST: evil\r\n",
    ] {
        assert_eq!(refusal(bytes.as_bytes()), ProtocolError::Http, "{bytes:?}");
    }
    assert!(!ProtocolError::Http.is_answered());
    assert!(ProtocolError::ZeroByte.is_answered());
}

#[test]
fn http_in_an_array_is_an_argument_like_any_other() {
    assert_eq!(outcome(b"*1\r\n$4\r\nPOST\r\n").commands, [[b"POST"]]);
}

#[test]
fn an_invalid_bulk_length_is_refused() {
    for length in ["-1", "-2147483648", "abc", "+5", "", " 5", "5 ", "05", "0x5", "5.0", "-0", "1e3", "５"] {
        let bytes = format!("*1\r\n${length}\r\nhello\r\n");
        assert_eq!(refusal(bytes.as_bytes()), ProtocolError::InvalidBulkLength, "{length:?}");
    }
    assert_eq!(refusal(b"*1\r\n$99999999999999999999\r\n"), ProtocolError::InvalidBulkLength);
}

#[test]
fn an_argument_of_512_kib_is_read_and_one_byte_more_is_refused() {
    let most = encode(&[vec![vec![b'x'; 512 * 1024]]]);
    let outcome = read_chunks(Limits::AUTHENTICATED, most.chunks(10_000));
    assert_eq!((outcome.commands.len(), outcome.end), (1, Ok(0)));
    let too_long = ProtocolError::ArgumentTooLong { limit: 512 * 1024, is_authenticated: true };
    assert_eq!(refusal(b"*1\r\n$524289\r\n"), too_long);
}

#[test]
fn too_many_arguments_are_refused_by_their_header() {
    let too_many = ProtocolError::TooManyArguments { limit: 65_536, is_authenticated: true };
    for count in ["2147483647", "65537", "999999999999999999"] {
        assert_eq!(refusal(format!("*{count}\r\n").as_bytes()), too_many, "{count}");
    }
    assert_eq!(outcome(b"*65536\r\n").end, Ok(8));
}

#[test]
fn an_invalid_array_length_is_refused() {
    for length in ["abc", "+1", "", " 1", "01", "1 ", "-", "-0", "?", "1\n", "1\rx", "9999999999999999999"] {
        let bytes = format!("*{length}\r\n$4\r\nPING\r\n");
        assert_eq!(refusal(bytes.as_bytes()), ProtocolError::InvalidMultibulkLength, "{length:?}");
    }
}

#[test]
fn anything_but_a_bulk_string_in_an_array_is_refused() {
    for found in *b"*:+-_#,(!=%~>|\r\nx\0\xff" {
        let bytes = [b"*2\r\n$1\r\na\r\n", &[found][..], b"1\r\n$4\r\nPING\r\n"].concat();
        assert_eq!(refusal(&bytes), ProtocolError::ExpectedBulk { found });
    }
    let deep = "*1\r\n".repeat(10_000);
    assert_eq!(refusal(deep.as_bytes()), ProtocolError::ExpectedBulk { found: b'*' });
}

#[test]
fn an_argument_with_a_wrong_length_is_refused() {
    for bytes in
        ["*1\r\n$3\r\nPING\r\n", "*1\r\n$5\r\nPING\r\nx", "*1\r\n$4\r\nPINGxx", "*1\r\n$4\r\nPING\n\n"]
    {
        assert_eq!(refusal(bytes.as_bytes()), ProtocolError::ExpectedCrlf, "{bytes:?}");
    }
}

#[test]
fn a_command_is_limited_as_a_whole() {
    let limit = Limits::AUTHENTICATED.command_bytes_max;
    let half = vec![b'x'; 512 * 1024];
    let two = encode(&[vec![half.clone(), half.clone()]]);
    assert_eq!(read_chunks(Limits::AUTHENTICATED, [&two[..]]).end, Ok(0));
    let three = encode(&[vec![half.clone(), half.clone(), half]]);
    let outcome = read_chunks(Limits::AUTHENTICATED, three.chunks(65_536));
    assert_eq!(outcome, Outcome { commands: vec![], end: Err(ProtocolError::CommandTooLong { limit }) });
}

#[test]
fn a_line_of_64_kib_is_read_and_one_byte_more_is_refused() {
    let line = |bytes: usize, end: &str| format!("ECHO {}{end}", "x".repeat(bytes - 5)).into_bytes();
    assert_eq!(outcome(&line(65_536, "\n")).commands[0][1].len(), 65_531);
    let too_long = ProtocolError::InlineTooLong { limit: 65_536 };
    assert_eq!(refusal(&line(65_537, "")), too_long);
    assert_eq!(refusal(&line(65_537, "\n")), too_long);
    assert_eq!(refusal(&vec![b' '; 65_537]), too_long);
}

#[test]
fn unbalanced_quotes_are_refused() {
    for line in ["INCR \"a\r\n", "INCR 'a\r\n", "INCR \"a\"b\r\n", "\"\r\n"] {
        assert_eq!(refusal(line.as_bytes()), ProtocolError::UnbalancedQuotes, "{line:?}");
    }
}

#[test]
fn a_tls_handshake_is_refused_without_waiting_for_a_line_end() {
    assert_eq!(refusal(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), ProtocolError::ZeroByte);
}

#[test]
fn empty_lines_and_arrays_are_skipped() {
    let outcome = outcome(b"\r\n\n  \r\n*0\r\n*-1\r\n*-7\r\nPING\r\n\r\n");
    assert_eq!(outcome, Outcome { commands: vec![vec![b"PING".to_vec()]], end: Ok(0) });
}

#[test]
fn an_unauthenticated_client_has_tight_limits() {
    let limits = Limits::UNAUTHENTICATED;
    let ten = encode(&[vec![b"x".to_vec(); 10]]);
    assert_eq!(read_chunks(limits, [&ten[..]]).end, Ok(0));
    let too_many = ProtocolError::TooManyArguments { limit: 10, is_authenticated: false };
    assert_eq!(refusal_under(limits, b"*11\r\n"), too_many);
    let too_long = ProtocolError::ArgumentTooLong { limit: 16_384, is_authenticated: false };
    assert_eq!(refusal_under(limits, b"*1\r\n$16385\r\n"), too_long);
    let five = encode(&[vec![vec![b'x'; 16_384]; 5]]);
    assert_eq!(refusal_under(limits, &five), ProtocolError::CommandTooLong { limit: 65_536 });
    let line = vec![b'x'; 16_385];
    assert_eq!(refusal_under(limits, &line), ProtocolError::InlineTooLong { limit: 16_384 });
}

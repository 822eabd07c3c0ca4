//! Answers into bytes, in either version of the protocol. Owns how each kind of answer is written. Must never
//! let a CR or LF into a line, where it would end the answer and begin a forged one.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

/// The version of the protocol that a connection speaks; `HELLO 3` changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every client speaks at first.
    #[default]
    Resp2,
    /// With maps, sets, nulls, booleans and doubles of its own.
    Resp3,
}

impl Protocol {
    /// Its number, as `HELLO` has it.
    pub fn version(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Appends answers to a buffer, which the caller empties into the socket.
#[derive(Debug)]
pub struct Reply<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl<'o> Reply<'o> {
    /// Answers at the end of `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// `+OK`. What would break the line is written as a space.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// `-ERR no such series`: a prefix that programs look at and a sentence for people. What would break
    /// the line is written as a space.
    pub fn error(&mut self, prefix: &str, sentence: impl Display) {
        self.line(b'-', format_args!("{prefix} {sentence}"));
    }

    /// `:1001`.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// An integer that is not negative; nothing counts beyond the largest one.
    #[inline]
    pub(super) fn count(&mut self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// `$5\r\nhello`: any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.body(bytes);
    }

    /// Names and values, as a map has them.
    pub(super) fn pairs<'t>(&mut self, pairs: impl IntoIterator<Item = (&'t str, &'t str)>) {
        for (name, value) in pairs {
            self.bulk(name.as_bytes());
            self.bulk(value.as_bytes());
        }
    }

    /// Nothing, where a string could stand.
    pub fn null(&mut self) {
        self.either(b"$-1\r\n", b"_\r\n");
    }

    /// Nothing, where an array could stand.
    pub fn null_array(&mut self) {
        self.either(b"*-1\r\n", b"_\r\n");
    }

    /// The beginning of an array: `count` answers follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// The beginning of a set: `count` answers follow.
    pub fn set(&mut self, count: usize) {
        let kind = if self.protocol == Protocol::Resp3 { b'~' } else { b'*' };
        self.header(kind, count);
    }

    /// The beginning of a map: `count` times a key and a value follow. Flat in RESP2.
    pub fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', count * 2),
            Protocol::Resp3 => self.header(b'%', count),
        }
    }

    /// Yes or no; 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        let (resp2, resp3) = if value { (b":1\r\n", b"#t\r\n") } else { (b":0\r\n", b"#f\r\n") };
        self.either(resp2, resp3);
    }

    /// A number with a fraction; a string in RESP2. Written with as few digits as read back the same.
    pub fn double(&mut self, value: f64) {
        let mut text = String::new();
        let is_plain = value == 0.0 || (1e-5..1e17).contains(&value.abs());
        let written = match value {
            _ if value.is_nan() => write!(text, "nan"),
            _ if value.is_infinite() || is_plain => write!(text, "{value}"),
            _ => write!(text, "{value:e}"),
        };
        written.expect("a String takes all that is written to it");
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text),
        }
    }

    /// Text for people, as `INFO` and `CLIENT LIST` answer; a plain bulk string in RESP2.
    pub fn verbatim(&mut self, text: &str) {
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text.as_bytes());
        }
        self.header(b'=', text.len() + 4);
        self.out.extend_from_slice(b"txt:");
        self.body(text.as_bytes());
    }

    fn line(&mut self, kind: u8, text: impl Display) {
        let start = self.out.len() + 1;
        self.out.push(kind);
        write!(self.out, "{text}").expect("a Vec takes all that is written to it");
        for byte in self.out[start..].iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')) {
            *byte = b' ';
        }
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn header(&mut self, kind: u8, number: impl itoa::Integer) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        // This is the answer to `INCR`: the buffer grows once at most.
        self.out.reserve(digits.len() + 3);
        self.out.push(kind);
        self.out.extend_from_slice(digits);
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    fn either(&mut self, resp2: &[u8], resp3: &[u8]) {
        self.out.extend_from_slice(if self.protocol == Protocol::Resp2 { resp2 } else { resp3 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written in RESP2 and in RESP3.
    fn both(answer: impl Fn(&mut Reply<'_>)) -> [String; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut out = Vec::new();
            answer(&mut Reply::new(&mut out, protocol));
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn what_both_versions_share_is_written_the_same() {
        assert_eq!(both(|reply| reply.simple("OK")), ["+OK\r\n"; 2]);
        assert_eq!(both(|reply| reply.error("ERR", "no")), ["-ERR no\r\n"; 2]);
        assert_eq!(both(|reply| reply.integer(1001)), [":1001\r\n"; 2]);
        assert_eq!(both(|reply| reply.integer(i64::MIN)), [":-9223372036854775808\r\n"; 2]);
        assert_eq!(both(|reply| reply.bulk(b"")), ["$0\r\n\r\n"; 2]);
        assert_eq!(both(|reply| reply.bulk(b"a\r\nb")), ["$4\r\na\r\nb\r\n"; 2]);
        assert_eq!(both(|reply| reply.array(3)), ["*3\r\n"; 2]);
    }

    #[test]
    // The method itself would fix the lifetime of the buffer, and not compile.
    #[allow(clippy::redundant_closure_for_method_calls)]
    fn what_resp2_has_not_is_written_as_the_nearest_it_has() {
        assert_eq!(both(|reply| reply.null()), ["$-1\r\n", "_\r\n"]);
        assert_eq!(both(|reply| reply.null_array()), ["*-1\r\n", "_\r\n"]);
        assert_eq!(both(|reply| reply.map(3)), ["*6\r\n", "%3\r\n"]);
        assert_eq!(both(|reply| reply.set(3)), ["*3\r\n", "~3\r\n"]);
        assert_eq!(both(|reply| reply.boolean(true)), [":1\r\n", "#t\r\n"]);
        assert_eq!(both(|reply| reply.boolean(false)), [":0\r\n", "#f\r\n"]);
        assert_eq!(both(|reply| reply.double(1.5)), ["$3\r\n1.5\r\n", ",1.5\r\n"]);
        assert_eq!(both(|reply| reply.verbatim("a:1\r\n")), ["$5\r\na:1\r\n\r\n", "=9\r\ntxt:a:1\r\n\r\n"]);
    }

    #[test]
    fn doubles_are_short_and_never_hundreds_of_digits() {
        let texts = [(0.0, "0"), (-3.0, "-3"), (1e300, "1e300"), (1e-300, "1e-300"), (0.1, "0.1")];
        let odd = [(f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (f64::NAN, "nan")];
        for (value, text) in texts.into_iter().chain(odd) {
            assert_eq!(both(|reply| reply.double(value))[1], format!(",{text}\r\n"));
        }
    }

    #[test]
    fn no_line_end_can_be_smuggled_into_a_line() {
        let forged = "no such key 'a'\r\n+OK\r\n:1\n\r";
        for text in
            [both(|reply| reply.error("ERR", forged)), both(|reply| reply.simple(forged))].as_flattened()
        {
            assert_eq!(text.matches(['\r', '\n']).count(), 2, "{text:?}");
            assert!(text.ends_with("\r\n"), "{text:?}");
        }
    }
}

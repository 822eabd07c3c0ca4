//! Writes answers as bytes, in RESP2 and RESP3. Must never let a CR or LF into a line: a forged answer could follow.

use std::fmt::Display;
use std::io::Write as _;

use bates_core::{ErrorCode, PoppedNumbers};

/// The protocol version of a connection; `HELLO 3` changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Every connection begins with it.
    #[default]
    Resp2,
    /// With types for maps, sets and nulls.
    Resp3,
}

impl Protocol {
    pub fn version(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Appends answers to a buffer, which the caller writes to the socket.
#[derive(Debug)]
pub struct Reply<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl<'o> Reply<'o> {
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// `+OK`. CR and LF become spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// `-ERR no such series`: a prefix for programs and a sentence for people. CR and LF become spaces.
    pub fn error(&mut self, prefix: &str, sentence: impl Display) {
        self.line(b'-', format_args!("{prefix} {sentence}"));
    }

    /// An error of the table: its prefix, its code and a sentence.
    pub(super) fn code(&mut self, code: ErrorCode, sentence: impl Display) {
        self.error(code.resp_prefix(), format_args!("{code}: {sentence}"));
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// A greater value than RESP can carry becomes the greatest that it can.
    #[inline]
    pub(super) fn unsigned(&mut self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// `$5\r\nhello`: any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.body(bytes);
    }

    /// Each number as a bulk string.
    pub(super) fn bulks(&mut self, numbers: &PoppedNumbers) {
        let begin = |out: &mut Vec<u8>, length| Reply::new(out, Protocol::Resp2).header(b'$', length);
        numbers.append(self.out, begin, b"\r\n");
    }

    pub(super) fn pairs<'t>(&mut self, pairs: impl IntoIterator<Item = (&'t str, &'t str)>) {
        for (name, value) in pairs {
            self.bulk(name.as_bytes());
            self.bulk(value.as_bytes());
        }
    }

    /// Null instead of a string.
    pub fn null(&mut self) {
        self.either(b"$-1\r\n", b"_\r\n");
    }

    /// Null instead of an array.
    pub fn null_array(&mut self) {
        self.either(b"*-1\r\n", b"_\r\n");
    }

    /// `count` answers follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// `count` answers follow.
    pub fn set(&mut self, count: usize) {
        let kind = if self.protocol == Protocol::Resp3 { b'~' } else { b'*' };
        self.header(kind, count);
    }

    /// `count` pairs of a key and a value follow; in RESP2 a flat array.
    pub fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', count * 2),
            Protocol::Resp3 => self.header(b'%', count),
        }
    }

    /// `count` answers follow, which belong to no command; in RESP2 an array.
    pub(super) fn push(&mut self, count: usize) {
        let kind = if self.protocol == Protocol::Resp3 { b'>' } else { b'*' };
        self.header(kind, count);
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
        let _ = write!(self.out, "{text}");
        for byte in self.out[start..].iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')) {
            *byte = b' ';
        }
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn header(&mut self, kind: u8, number: impl itoa::Integer) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        // The answer to `INCR` takes this path: the buffer grows at most once.
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

    fn both(answer: impl Fn(&mut Reply<'_>)) -> [String; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut out = Vec::new();
            answer(&mut Reply::new(&mut out, protocol));
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn common_types_are_the_same_in_both_versions() {
        assert_eq!(both(|reply| reply.simple("OK")), ["+OK\r\n"; 2]);
        assert_eq!(both(|reply| reply.error("ERR", "no")), ["-ERR no\r\n"; 2]);
        assert_eq!(both(|reply| reply.integer(1001)), [":1001\r\n"; 2]);
        assert_eq!(both(|reply| reply.integer(i64::MIN)), [":-9223372036854775808\r\n"; 2]);
        assert_eq!(both(|reply| reply.bulk(b"")), ["$0\r\n\r\n"; 2]);
        assert_eq!(both(|reply| reply.bulk(b"a\r\nb")), ["$4\r\na\r\nb\r\n"; 2]);
        assert_eq!(both(|reply| reply.array(3)), ["*3\r\n"; 2]);
    }

    #[test]
    // Passing the method itself would fix the lifetime of the buffer, and not compile.
    #[allow(clippy::redundant_closure_for_method_calls)]
    fn types_that_resp2_lacks_are_written_as_similar_ones() {
        assert_eq!(both(|reply| reply.null()), ["$-1\r\n", "_\r\n"]);
        assert_eq!(both(|reply| reply.null_array()), ["*-1\r\n", "_\r\n"]);
        assert_eq!(both(|reply| reply.map(3)), ["*6\r\n", "%3\r\n"]);
        assert_eq!(both(|reply| reply.set(3)), ["*3\r\n", "~3\r\n"]);
        assert_eq!(both(|reply| reply.push(3)), ["*3\r\n", ">3\r\n"]);
        assert_eq!(both(|reply| reply.verbatim("a:1\r\n")), ["$5\r\na:1\r\n\r\n", "=9\r\ntxt:a:1\r\n\r\n"]);
    }

    #[test]
    fn a_line_cannot_contain_a_line_end() {
        let forged = "no such key 'a'\r\n+OK\r\n:1\n\r";
        for text in
            [both(|reply| reply.error("ERR", forged)), both(|reply| reply.simple(forged))].as_flattened()
        {
            assert_eq!(text.matches(['\r', '\n']).count(), 2, "{text:?}");
            assert!(text.ends_with("\r\n"), "{text:?}");
        }
    }
}

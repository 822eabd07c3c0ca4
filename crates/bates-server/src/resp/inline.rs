//! Commands typed by hand, `INCR "my key"`: splits a line into words, with exactly the quoting rules of Redis.

use super::error::ProtocolError;
use super::frame::Span;
use super::limits::Limits;

/// A web page can make a browser send lines that begin with these, and hide commands after them.
const HTTP_WORDS: [&[u8]; 2] = [b"post", b"host:"];

/// Whether a line begins like HTTP. The end of the line may be missing.
pub(super) fn begins_as_http(line: &[u8]) -> bool {
    let begins_with = |word: &[u8]| line.get(..5).is_some_and(|front| front.eq_ignore_ascii_case(word));
    begins_with(b"post ") || begins_with(b"host:")
}

/// Appends the words of a line to `text` without their quotes, and the place of each to `spans`.
pub(super) fn split(
    line: &[u8],
    limits: &Limits,
    text: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    let mut rest = skip_space(line);
    while !rest.is_empty() {
        let start = text.len();
        rest = skip_space(take_word(rest, text)?);
        limits.check_argument(text.len() - start)?;
        spans.push(Span { start, end: text.len() });
        limits.check_count(spans.len())?;
    }
    let is_http = spans.first().is_some_and(|first| {
        HTTP_WORDS.iter().any(|word| text[first.start..first.end].eq_ignore_ascii_case(word))
    });
    if is_http { Err(ProtocolError::Http) } else { Ok(()) }
}

/// As `isspace` of C.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

fn skip_space(line: &[u8]) -> &[u8] {
    let count = line.iter().take_while(|byte| is_space(**byte)).count();
    &line[count..]
}

/// Takes the first word. A quote may begin in the middle of a word, and its end ends the word.
fn take_word<'l>(line: &'l [u8], text: &mut Vec<u8>) -> Result<&'l [u8], ProtocolError> {
    let mut rest = line;
    loop {
        match rest {
            // Not all spaces of C: in Redis, a vertical tab separates words only after a quote.
            [] | [b' ' | b'\t' | b'\n' | b'\r', ..] => return Ok(rest),
            [quote @ (b'"' | b'\''), quoted @ ..] => return take_quoted(*quote, quoted, text),
            [byte, tail @ ..] => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
}

/// Within single quotes, only a single quote can be escaped.
fn take_quoted<'l>(quote: u8, quoted: &'l [u8], text: &mut Vec<u8>) -> Result<&'l [u8], ProtocolError> {
    let is_double = quote == b'"';
    let mut rest = quoted;
    loop {
        let (byte, tail) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [byte, tail @ ..] if *byte == quote => return check_closed(tail),
            [b'\\', b'x', high, low, tail @ ..] if is_double && let Some(it) = hex(*high, *low) => (it, tail),
            [b'\\', letter, tail @ ..] if is_double || *letter == quote => (unescape(*letter), tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        text.push(byte);
        rest = tail;
    }
}

fn check_closed(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn unescape(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &Limits::AUTHENTICATED, &mut text, &mut spans)?;
        Ok(spans.iter().map(|span| text[span.start..span.end].to_vec()).collect())
    }

    #[test]
    fn spaces_separate_words_unless_they_are_quoted() {
        let cases: [(&str, &[&[u8]]); 8] = [
            ("", &[]),
            (" \t\r ", &[]),
            ("INCR  seq:a ", &[b"INCR", b"seq:a"]),
            (r#"INCR "seq a""#, &[b"INCR", b"seq a"]),
            (r"INCR 'it\'s \n'", &[b"INCR", br"it's \n"]),
            (r#"a "" ''"#, &[b"a", b"", b""]),
            (r#"pre"quoted end" x"#, &[b"prequoted end", b"x"]),
            (r#""\x41\xfF\xg1\n\r\t\b\a\"\\\q""#, &[b"A\xffxg1\n\r\t\x08\x07\"\\q"]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn an_open_quote_or_text_right_after_a_quote_is_refused() {
        for line in
            [r#"a "b"#, "a 'b", r#"a "b"c"#, "a 'b'c", r#"a "b\""#, r"a 'b\'", r#"a "b"'c'"#, r"a 'it''"]
        {
            assert_eq!(words(line), Err(ProtocolError::UnbalancedQuotes), "{line:?}");
        }
    }

    #[test]
    fn http_is_recognized_by_its_first_word_in_any_case() {
        for line in ["POST / HTTP/1.1", "post", " Post /", "Host: example.org", "hOsT:"] {
            assert_eq!(words(line), Err(ProtocolError::Http), "{line:?}");
        }
        assert!(words("INCR post").is_ok());
        assert!(words("POSTER").is_ok());
    }
}

//! A length: the decimal number and CRLF after `*` and `$`. Accepts the same numbers as Redis: no plus sign, no leading
//! zero. `limits.rs` decides whether a number is too large.

/// Prevents an overflow, and refuses a line without an end early; Redis waits for 64 KiB.
const DIGITS_MAX: usize = 18;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The number and its bytes including CRLF; `None` if more bytes could complete it.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Option<(i64, usize)>, Malformed> {
    // Nearly every length in a command has one or two digits.
    match *bytes {
        [ones @ b'0'..=b'9', b'\r', b'\n', ..] => Ok(Some((value(ones), 3))),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Ok(Some((value(tens) * 10 + value(ones), 4)))
        }
        _ => read_any(bytes),
    }
}

fn read_any(bytes: &[u8]) -> Result<Option<(i64, usize)>, Malformed> {
    let is_negative = bytes.first() == Some(&b'-');
    let digits = &bytes[usize::from(is_negative)..];
    let count = digits.iter().take(DIGITS_MAX + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = digits.split_at(count);
    let has_leading_zero = digits.first() == Some(&b'0') && (count > 1 || is_negative);
    if count > DIGITS_MAX || has_leading_zero {
        return Err(Malformed);
    }
    let magnitude = digits.iter().fold(0, |sum, digit| sum * 10 + value(*digit));
    let number = if is_negative { -magnitude } else { magnitude };
    match rest {
        [] | [b'\r'] if count > 0 || rest.is_empty() => Ok(None),
        [b'\r', b'\n', ..] if count > 0 => Ok(Some((number, bytes.len() - rest.len() + 2))),
        _ => Err(Malformed),
    }
}

fn value(digit: u8) -> i64 {
    i64::from(digit - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_line_end() {
        for (text, number) in [("0", 0), ("7", 7), ("16", 16), ("99", 99), ("100", 100), ("524288", 524_288)]
        {
            let line = format!("{text}\r\nrest");
            assert_eq!(read(line.as_bytes()), Ok(Some((number, text.len() + 2))), "{text}");
        }
        assert_eq!(read(b"-1\r\n"), Ok(Some((-1, 4))));
        assert_eq!(read(b"999999999999999999\r\n"), Ok(Some((999_999_999_999_999_999, 20))));
    }

    #[test]
    fn an_incomplete_number_waits_for_more_bytes() {
        for text in ["", "-", "-1", "-1\r", "0", "0\r", "12", "12\r", "123456789012345678"] {
            assert_eq!(read(text.as_bytes()), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn an_invalid_number_is_refused_at_its_first_wrong_byte() {
        let words = ["+", " ", "a", "1a", "1 ", "1.", "01", "00", "-0", "--", "-a", "0x", "\0", "\u{661}"];
        let breaks = ["\r", "\n", "-\r", "1\n", "1\rx"];
        for text in words.into_iter().chain(breaks).chain(["1234567890123456789"]) {
            assert_eq!(read(text.as_bytes()), Err(Malformed), "{text:?}");
        }
    }
}

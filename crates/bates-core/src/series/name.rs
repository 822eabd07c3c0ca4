//! The name of a series: short, lower case, safe in a path, a key and a metric. A dot separates the name of a tenant
//! from the rest: `acme.invoice`.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const BYTES_MAX: usize = 64;

/// Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name for a series: a lower-case letter, then up to 63 of a-z, 0-9, _, - and single dots"
)]
pub struct SeriesNameError(Box<str>);

impl SeriesName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lets a map of series be searched with a text. Names compare and hash as their texts do.
impl Borrow<str> for SeriesName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for SeriesName {
    type Err = SeriesNameError;

    fn from_str(text: &str) -> Result<Self, SeriesNameError> {
        let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
        let goes_on = text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.'));
        let has_empty_part = text.ends_with('.') || text.contains("..");
        if starts && goes_on && !has_empty_part && text.len() <= BYTES_MAX {
            Ok(Self(text.into()))
        } else {
            Err(SeriesNameError(text.chars().take(BYTES_MAX + 1).collect::<String>().into()))
        }
    }
}

impl fmt::Debug for SeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for SeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_short() {
        let long = "x".repeat(64);
        for good in ["a", "document", "id-pool_2", "acme.invoice", "a.b.c", &long] {
            assert_eq!(good.parse::<SeriesName>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "2nd",
            "-a",
            "A",
            "a b",
            "a/b",
            "a\0",
            "é",
            "a\u{202e}",
            ".",
            "a.",
            "a..b",
            ".a",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<SeriesName>().is_err(), "{bad:?}");
        }
    }
}

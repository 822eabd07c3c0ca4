//! Paths of the API. Owns escaping: what a caller gives stays one part of a path, or one value of a query.

use std::fmt::{self, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything else is escaped in a path or a query.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path below the address of a server, with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(String);

/// A part that cannot stand in a path, however it is escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot stand in a path")]
pub struct PathError(pub String);

impl Path {
    /// A path of the API; each part stays one part, whatever it holds.
    pub fn v1<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, PathError> {
        let mut path = String::from("/v1");
        for part in parts {
            // An address drops these even when they are escaped.
            if matches!(part, "" | "." | "..") {
                return Err(PathError(part.to_owned()));
            }
            // Writing to a text does not fail.
            let _ = write!(path, "/{}", utf8_percent_encode(part, ESCAPED));
        }
        Ok(Self(path))
    }

    /// The same path with one more pair in its query.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let sign = if self.0.contains('?') { '&' } else { '?' };
        let (name, value) = (utf8_percent_encode(name, ESCAPED), utf8_percent_encode(value, ESCAPED));
        let _ = write!(self.0, "{sign}{name}={value}");
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_stays_one_part() {
        for part in ["a/b", "a?b#c", "%2e%2e", "ä b", "a&b=c"] {
            let path = Path::v1(["ids", part]).expect(part).with("q", part).with("r", "").to_string();
            let (path, query) = path.split_once('?').expect("a query");
            let parts: Vec<&str> = path.split('/').collect();
            let read =
                |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
            assert_eq!(&parts[..3], ["", "v1", "ids"]);
            assert_eq!((read(parts[3]).as_str(), parts.len()), (part, 4), "{path}");
            assert_eq!(
                query.strip_suffix("&r=").and_then(|query| query.strip_prefix("q=")).map(read).as_deref(),
                Some(part)
            );
        }
        for part in ["", ".", ".."] {
            assert_eq!(Path::v1(["ids", part]), Err(PathError(part.to_owned())));
        }
    }
}

//! Paths of the API. Owns escaping: a text given by the caller stays one segment of the path, or one value of the query.

use std::fmt::{self, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to escape in a path or a query: all but the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path on a server, with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(String);

/// A text that cannot be a path segment, even if it is escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be a part of a URL path: use another text")]
pub struct PathError(pub String);

impl Path {
    /// A path below `/v1`. Each segment is escaped, so it stays one segment.
    pub fn v1<'a>(segments: impl IntoIterator<Item = &'a str>) -> Result<Self, PathError> {
        let mut path = String::from("/v1");
        for segment in segments {
            // URL parsers remove these segments even if they are escaped.
            if matches!(segment, "" | "." | "..") {
                return Err(PathError(segment.to_owned()));
            }
            // Writing to a String cannot fail.
            let _ = write!(path, "/{}", utf8_percent_encode(segment, ESCAPED));
        }
        Ok(Self(path))
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let separator = if self.0.contains('?') { '&' } else { '?' };
        let (name, value) = (utf8_percent_encode(name, ESCAPED), utf8_percent_encode(value, ESCAPED));
        let _ = write!(self.0, "{separator}{name}={value}");
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
    use percent_encoding::percent_decode_str;

    use super::*;

    #[test]
    fn a_path_segment_stays_one_segment() {
        for segment in ["a/b", "a?b#c", "%2e%2e", "ä b", "a&b=c"] {
            let path = Path::v1(["ids", segment]).expect(segment).with("q", segment).with("r", "");
            let path = path.to_string();
            let (path, query) = path.split_once('?').expect("the path has a query");
            let segments: Vec<&str> = path.split('/').collect();
            let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            assert_eq!(&segments[..3], ["", "v1", "ids"]);
            assert_eq!((decode(segments[3]).as_str(), segments.len()), (segment, 4), "{path}");
            let value = query.strip_suffix("&r=").and_then(|query| query.strip_prefix("q="));
            assert_eq!(value.map(decode).as_deref(), Some(segment));
        }
        for segment in ["", ".", ".."] {
            assert_eq!(Path::v1(["ids", segment]), Err(PathError(segment.to_owned())));
        }
    }
}

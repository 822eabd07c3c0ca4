//! Where a call goes: the address of a server, and paths in which nothing that a caller gives can lead elsewhere.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use crate::error::Error;

/// What stays as it is in a path or a query.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a server, such as `http://127.0.0.1:8080`, perhaps with a path that a proxy puts before its own.
#[derive(Clone)]
pub(crate) struct Address {
    base: Box<str>,
    host: Box<str>,
    pub(crate) is_tls: bool,
}

/// A path below an address, with its query.
pub(crate) struct Path(String);

impl Address {
    /// Nothing of an address that is refused is shown: it may hold a password.
    pub(crate) fn of(text: &str) -> Result<Self, Error> {
        let refused = |reason: &str| Error::wrong("address of Bates", reason);
        let url = Url::parse(text).map_err(|problem| refused(&problem.to_string()))?;
        let Some(host) = url.host_str() else { return Err(refused("it names no host")) };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("expected one such as http://127.0.0.1:8080"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it holds a name or a password; a secret is given apart from it"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused("it has a query or a fragment"));
        }
        let host = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let base = url.as_str().trim_end_matches('/').into();
        Ok(Self { base, host: host.into(), is_tls: url.scheme() == "https" })
    }

    /// `host:port`, for people.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn url(&self, path: &Path) -> Result<Url, Error> {
        let joined = format!("{}{}", self.base, path.0);
        Url::parse(&joined).map_err(|problem| Error::wrong("address of Bates", problem.to_string()))
    }
}

impl Path {
    /// Each part stays one part, whatever is in it. `what` names what a caller gave, for the error.
    pub(crate) fn of<'a>(
        what: &'static str,
        parts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let mut path = String::new();
        for part in parts {
            // However they are escaped, an address does not keep these.
            if matches!(part, "" | "." | "..") {
                return Err(Error::wrong(what, format!("{part:?} cannot stand in a path")));
            }
            // Writing to a text does not fail.
            let _ = write!(path, "/{}", utf8_percent_encode(part, ESCAPED));
        }
        Ok(Self(path))
    }

    /// The same path with one more pair in its query.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let sign = if self.0.contains('?') { '&' } else { '?' };
        let (name, value) = (utf8_percent_encode(name, ESCAPED), utf8_percent_encode(value, ESCAPED));
        let _ = write!(self.0, "{sign}{name}={value}");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_stays_one_part() {
        let address = Address::of("http://h:1/below/").unwrap();
        for part in ["a/b", "a?b#c", "%2e%2e", "ä b", "a&b=c"] {
            let path = Path::of("identifier", ["v1", "ids", part]).unwrap().with("q", part);
            let url = address.url(&path).unwrap();
            let parts: Vec<&str> = url.path_segments().unwrap().collect();
            assert_eq!(&parts[..3], ["below", "v1", "ids"], "{url}");
            let read = percent_encoding::percent_decode_str(parts[3]).decode_utf8().unwrap();
            assert_eq!((&*read, parts.len()), (part, 4), "{url}");
            assert_eq!(url.query_pairs().collect::<Vec<_>>(), [("q".into(), part.into())]);
        }
        for part in ["", ".", ".."] {
            assert!(Path::of("identifier", ["v1", "ids", part]).is_err());
        }
    }

    #[test]
    fn an_address_is_refused_without_being_shown() {
        for text in [
            "127.0.0.1:8080",
            "redis://h",
            "http://",
            "",
            "http://sesame@h",
            "http://u:sesame@h",
            "http://h/?sesame",
            "http://h/#sesame",
            "http://sesame:x",
            "unix:/run/sesame",
        ] {
            let said = Address::of(text).err().expect(text).to_string();
            assert!(said.starts_with("the address of Bates cannot be used: "), "{said}");
            assert!(!said.contains("sesame"), "{said}");
        }
    }

    #[test]
    fn a_host_is_told_with_its_port() {
        for (text, host) in
            [("http://h", "h:80"), ("https://h/", "h:443"), ("http://[::1]:8080", "[::1]:8080")]
        {
            assert_eq!(Address::of(text).unwrap().host(), host);
        }
    }
}

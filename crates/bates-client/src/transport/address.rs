//! The address of a server.

use bates_api::Path;
use reqwest::Url;

use crate::error::Error;

/// Such as `http://127.0.0.1:8080`, perhaps with the path prefix of a proxy.
#[derive(Clone)]
pub(crate) struct Address {
    base: Box<str>,
    pub(crate) host: Box<str>,
    pub(crate) is_tls: bool,
}

impl Address {
    /// An error shows nothing of the address, which may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refused = |reason: &str| Error::invalid("address of Bates", reason);
        let url = Url::parse(text).map_err(|problem| refused(&problem.to_string()))?;
        let Some(host) = url.host_str() else { return Err(refused("it has no host")) };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("expected one such as http://127.0.0.1:8080"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it holds a user or a password: set the secret separately"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused("it has a query or a fragment: remove it"));
        }
        let host = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let base = url.as_str().trim_end_matches('/').into();
        Ok(Self { base, host: host.into(), is_tls: url.scheme() == "https" })
    }

    pub(crate) fn url(&self, path: &Path) -> Result<Url, Error> {
        let joined = format!("{}{path}", self.base);
        Url::parse(&joined).map_err(|problem| Error::invalid("address of Bates", problem.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_appended_to_the_address() {
        let address = Address::parse("http://h:1/below/").unwrap();
        let path = Path::v1(["ids", "a/%2e b"]).unwrap().with("q", "ä&b");
        let url = address.url(&path).unwrap();
        assert_eq!(url.as_str(), "http://h:1/below/v1/ids/a%2F%252e%20b?q=%C3%A4%26b");
    }

    #[test]
    fn the_error_of_an_address_does_not_show_it() {
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
            let error = Address::parse(text).err().expect(text).to_string();
            assert!(error.starts_with("invalid address of Bates: "), "{error}");
            assert!(!error.contains("sesame"), "{error}");
        }
    }

    #[test]
    fn a_host_is_shown_with_its_port() {
        for (text, host) in
            [("http://h", "h:80"), ("https://h/", "h:443"), ("http://[::1]:8080", "[::1]:8080")]
        {
            assert_eq!(&*Address::parse(text).unwrap().host, host);
        }
    }
}

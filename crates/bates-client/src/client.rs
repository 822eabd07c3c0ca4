//! The client of a server, and its builder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;

use crate::error::Error;
use crate::series::Series;
use crate::transport::{Address, RetrySettings, Transport, config};

/// A client of a Bates server. Clones share its connections. Needs a Tokio runtime; follows no redirect, uses no proxy.
///
/// ```no_run
/// # async fn first() -> Result<(), bates_client::Error> {
/// use bates_client::Client;
///
/// let client = Client::connect("http://127.0.0.1:8080")?;
/// let key = client.series("short").next().await?;
/// let documents = client.series("document").scope([("project", "PROJ"), ("type", "9012")]);
/// let numbers = documents.take(200_000).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
}

/// Builds a client. Its `Debug` shows no secret.
#[must_use]
pub struct ClientBuilder {
    url: String,
    secret: Option<String>,
    authorities: Vec<Vec<u8>>,
    settings: RetrySettings,
}

impl Client {
    /// A client with the default settings and no secret. The first call connects.
    pub fn connect(url: impl Into<String>) -> Result<Self, Error> {
        Self::builder(url).build()
    }

    /// A client with other settings.
    ///
    /// ```no_run
    /// # fn first() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let client = bates_client::Client::builder("https://numbers.example.com")
    ///     .secret(std::env::var("BATES_SECRET")?)
    ///     .authority(std::fs::read("ca.pem")?)
    ///     .attempts(3)
    ///     .total_time(Duration::from_secs(10))
    ///     .build()?;
    /// # Ok(()) }
    /// ```
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        let (url, settings) = (url.into(), RetrySettings::default());
        ClientBuilder { url, secret: None, authorities: Vec::new(), settings }
    }

    /// A series, by its name. Sends nothing.
    pub fn series(&self, name: impl Into<String>) -> Series {
        Series::new(self.clone(), name.into())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("host", &self.transport.host()).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// The secret of the server or of a token, sent with every call; over `http://` others can read it.
    pub fn secret(self, secret: impl Into<String>) -> Self {
        Self { secret: Some(secret.into()), ..self }
    }

    /// A PEM file of certificate authorities to trust besides those of the system.
    pub fn authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    /// Max attempts of a call; the default is 5, and 1 means no retry.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { settings: RetrySettings { attempts, ..self.settings }, ..self }
    }

    /// Max time of a call with all its attempts; the default is a minute.
    pub fn total_time(self, total: Duration) -> Self {
        Self { settings: RetrySettings { total, ..self.settings }, ..self }
    }

    /// Max time of one attempt; the default is 30 seconds.
    pub fn answer_timeout(self, answer: Duration) -> Self {
        Self { settings: RetrySettings { answer, ..self.settings }, ..self }
    }

    /// Max time to connect; the default is 2 seconds.
    pub fn connect_timeout(self, connect: Duration) -> Self {
        Self { settings: RetrySettings { connect, ..self.settings }, ..self }
    }

    /// The pause after the first attempt, which doubles up to `pause_max`. A server may ask for a longer one. The defaults
    /// are 100 ms and 5 s.
    pub fn pause(self, pause: Duration, pause_max: Duration) -> Self {
        Self { settings: RetrySettings { pause, pause_max, ..self.settings }, ..self }
    }

    /// The client. Sends nothing.
    pub fn build(self) -> Result<Client, Error> {
        let address = Address::parse(&self.url)?;
        let secret = self.secret.as_deref().map(bearer).transpose()?;
        let tls = config(address.is_tls, &self.authorities)?;
        Ok(Client { transport: Arc::new(Transport::new(address, secret, tls, self.settings)?) })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Refuses a secret that the server cannot read.
fn bearer(secret: &str) -> Result<HeaderValue, Error> {
    let invalid =
        || Error::invalid("secret", "expected visible ASCII characters, without spaces around them");
    let is_visible = secret.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if secret.is_empty() || secret.trim() != secret || !is_visible {
        return Err(invalid());
    }
    let mut bearer = HeaderValue::from_str(&format!("Bearer {secret}")).map_err(|_| invalid())?;
    bearer.set_sensitive(true);
    Ok(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let builder = Client::builder("http://127.0.0.1:1").secret("open sesame");
        assert!(!format!("{builder:?}").contains("sesame"));
        let client = builder.build().unwrap();
        let shown = format!("{client:?} {:?}", client.series("short"));
        assert!(!shown.contains("sesame") && shown.contains("127.0.0.1:1"), "{shown}");
        for bad in ["open sesame\n", " sesame", "sesame ü", ""] {
            let error = format!("{:?}", Client::builder("http://h").secret(bad).build().unwrap_err());
            assert!(!error.contains("sesame") && error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_invalid_authority_is_refused_when_the_client_is_built() {
        for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = Client::builder("https://h").authority(pem).build().unwrap_err();
            assert!(matches!(error, Error::BadArgument { what: "authority", .. }), "{error}");
        }
    }
}

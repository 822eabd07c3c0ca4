//! A server as a program asks it: the client, how one is made, and what is asked of no series in particular.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;

use crate::error::Error;
use crate::series::Series;
use crate::transport::{Address, Patience, Transport, authorities, config};

/// A Bates server that is asked. Clones share its connections.
///
/// Calls must be made in a Tokio runtime. No redirect is followed, and no proxy is used.
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

/// How a client is made. It shows nothing of what it holds, because that may be a secret.
#[must_use]
pub struct ClientBuilder {
    url: String,
    secret: Option<String>,
    authorities: Vec<Vec<u8>>,
    patience: Patience,
}

impl Client {
    /// A client without a secret, with the bounds that are usual. The server need not be up: the first call connects.
    pub fn connect(url: impl Into<String>) -> Result<Self, Error> {
        Self::builder(url).build()
    }

    /// A client with settings of its own.
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
        let (url, patience) = (url.into(), Patience::default());
        ClientBuilder { url, secret: None, authorities: Vec::new(), patience }
    }

    /// A series, by its name. Nobody is asked whether it is there.
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
    /// The secret of the server, or of a token. It is sent with every call; over `http://` others can read it.
    pub fn secret(self, secret: impl Into<String>) -> Self {
        Self { secret: Some(secret.into()), ..self }
    }

    /// An authority that is trusted besides those that the system knows: the certificates of a PEM file.
    pub fn authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    /// How often a call is tried, at the most; 5 unless said. 1 is never again.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { patience: Patience { attempts, ..self.patience }, ..self }
    }

    /// How long a call takes with all its attempts, at the most; a minute unless said.
    pub fn total_time(self, total: Duration) -> Self {
        Self { patience: Patience { total, ..self.patience }, ..self }
    }

    /// How long one attempt takes, at the most; 30 seconds unless said.
    pub fn answer_timeout(self, answer: Duration) -> Self {
        Self { patience: Patience { answer, ..self.patience }, ..self }
    }

    /// How long a connection takes, at the most; 2 seconds unless said.
    pub fn connect_timeout(self, connect: Duration) -> Self {
        Self { patience: Patience { connect, ..self.patience }, ..self }
    }

    /// How long a call rests after its first attempt, twice as long after each that follows, up to the longest; 100 ms
    /// and 5 s unless said. It rests longer where the server asks for that.
    pub fn pause(self, first: Duration, longest: Duration) -> Self {
        let patience = Patience { pause: first, pause_max: longest, ..self.patience };
        Self { patience, ..self }
    }

    /// The client. Asks nobody.
    pub fn build(self) -> Result<Client, Error> {
        let address = Address::of(&self.url)?;
        let secret = self.secret.as_deref().map(bearer).transpose()?;
        let mut trusted = Vec::new();
        for pem in &self.authorities {
            trusted.extend(authorities(pem)?);
        }
        let tls = config(address.is_tls, &trusted)?;
        Ok(Client { transport: Arc::new(Transport::new(address, secret, tls, self.patience)?) })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// As the server reads it: what a header would carry besides, it does not take for a secret.
fn bearer(secret: &str) -> Result<HeaderValue, Error> {
    let refused = |reason: &str| Error::wrong("secret", reason);
    let is_visible = secret.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if secret.is_empty() || secret.trim() != secret || !is_visible {
        return Err(refused("it is empty, has spaces around it, or holds what is not visible ASCII"));
    }
    let bearer = HeaderValue::from_str(&format!("Bearer {secret}"));
    let mut bearer = bearer.map_err(|_| refused("a header cannot hold it"))?;
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
            let said = format!("{:?}", Client::builder("http://h").secret(bad).build().unwrap_err());
            assert!(!said.contains("sesame") && said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn an_authority_that_is_none_is_refused_at_once() {
        for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let refused = Client::builder("https://h").authority(pem).build().unwrap_err();
            assert!(matches!(refused, Error::Wrong { what: "authority", .. }), "{refused}");
        }
    }
}

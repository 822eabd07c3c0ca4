//! Bates itself, asked over HTTP: for numbers, and for the epoch of a list.

use std::collections::BTreeMap;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::{BatesError, OpenError};
use crate::list::Server;
use crate::settings::Settings;

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Longer than numbers take from a server that can give them at all: Redis is tried meanwhile.
const NEXT_TIMEOUT: Duration = Duration::from_secs(30);

/// No call waits for it, unless Bates is away as well.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(1);

/// Numbers in one answer.
const COUNT_MAX: usize = 10_000;

/// What stays as it is in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A server, and the pool that it is asked about.
pub(crate) struct Bates {
    client: Client,
    next: Url,
    attach: Url,
    secret: Option<Box<str>>,
    scope: BTreeMap<String, String>,
}

/// Which list is taken from.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Attached {
    pub(crate) key: String,
    pub(crate) epoch: u64,
    pub(crate) store: Uuid,
}

#[derive(Serialize)]
struct Attach<'a> {
    scope: &'a BTreeMap<String, String>,
    run_id: &'a str,
    replication_id: &'a str,
}

#[derive(Serialize)]
struct Next<'a> {
    scope: &'a BTreeMap<String, String>,
    count: usize,
}

#[derive(Deserialize)]
struct Values {
    values: Vec<String>,
}

#[derive(Deserialize)]
struct Problem {
    code: Box<str>,
    detail: Box<str>,
}

impl Bates {
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let refused = |problem: &dyn std::fmt::Display| OpenError::Bates(problem.to_string().into());
        let series = utf8_percent_encode(&settings.series, ESCAPED);
        let path = |what: &str| -> Result<Url, OpenError> {
            let base = settings.bates.trim_end_matches('/');
            let url = Url::parse(&format!("{base}/v1/series/{series}/pool/{what}"));
            let url = url.map_err(|problem| refused(&problem))?;
            let is_http = matches!(url.scheme(), "http" | "https");
            if is_http { Ok(url) } else { Err(refused(&"expected one such as http://127.0.0.1:8080")) }
        };
        let (next, attach) = (path("next")?, path("attach")?);
        // Does nothing where the program has chosen one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|problem| refused(&problem))?;
        let secret = settings.secret.as_deref().map(Into::into);
        Ok(Self { client, next, attach, secret, scope: settings.scope.clone() })
    }

    /// Numbers that Redis never had; if there are fewer, why.
    pub(crate) async fn take(&self, count: usize) -> (Vec<String>, Option<BatesError>) {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            match self.next(count - numbers.len()).await {
                Ok(more) => numbers.extend(more),
                Err(error) => return (numbers, Some(error)),
            }
        }
        (numbers, None)
    }

    /// One answer: at least one number, and fewer where an answer holds no more or the scope ends.
    async fn next(&self, count: usize) -> Result<Vec<String>, BatesError> {
        let ask = Next { scope: &self.scope, count: count.min(COUNT_MAX) };
        let Values { values } = self.ask(&self.next, &ask, NEXT_TIMEOUT).await?;
        if values.is_empty() { Err(BatesError::Away("it gave no numbers".into())) } else { Ok(values) }
    }

    /// The list, and its epoch, for whoever sees this server; a server that Bates does not know moves the epoch on.
    pub(crate) async fn attach(&self, server: &Server) -> Result<Attached, BatesError> {
        let Server { run, replication } = server;
        let ask = Attach { scope: &self.scope, run_id: run, replication_id: replication };
        self.ask(&self.attach, &ask, ATTACH_TIMEOUT).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        url: &Url,
        ask: &impl Serialize,
        patience: Duration,
    ) -> Result<T, BatesError> {
        let body = serde_json::to_vec(ask).map_err(|problem| BatesError::Away(problem.to_string().into()))?;
        let late = |_| BatesError::Away(format!("no answer within {} s", patience.as_secs()).into());
        let (status, answer) = timeout(patience, self.sent(url, &body)).await.map_err(late)??;
        let strange =
            || BatesError::Away(format!("it answers {status}, and nothing that Bates answers").into());
        if status.is_success() {
            return serde_json::from_slice(&answer).map_err(|_| strange());
        }
        let Problem { code, detail } = serde_json::from_slice(&answer).map_err(|_| strange())?;
        if status.is_server_error() {
            return Err(BatesError::Away(format!("{code}: {detail}").into()));
        }
        Err(BatesError::Refused { code, detail })
    }

    /// Sends again once, if the connection failed: it may have been one that a restarted Bates no longer knew. What
    /// the first may have taken is a gap.
    async fn sent(&self, url: &Url, body: &[u8]) -> Result<(reqwest::StatusCode, Vec<u8>), BatesError> {
        match self.sent_once(url, body).await {
            Err(_) => self.sent_once(url, body).await.map_err(|error| BatesError::Away(reason(url, &error))),
            Ok(answer) => Ok(answer),
        }
    }

    async fn sent_once(
        &self,
        url: &Url,
        body: &[u8],
    ) -> Result<(reqwest::StatusCode, Vec<u8>), reqwest::Error> {
        let mut request = self.client.post(url.clone()).header("Content-Type", "application/json");
        if let Some(secret) = &self.secret {
            request = request.bearer_auth(secret);
        }
        let answer = request.body(body.to_vec()).send().await?;
        Ok((answer.status(), answer.bytes().await?.to_vec()))
    }
}

/// Who did not answer, and the last of the errors behind one another, which is the one that tells.
fn reason(url: &Url, error: &dyn std::error::Error) -> Box<str> {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    // Without a name or a password that the address may hold.
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    format!("no answer from {host}:{port}: {last}").into()
}

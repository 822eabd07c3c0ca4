//! Every call to Bates: sent within limits, retried if that is safe, and read. The only place that knows HTTP. Must never
//! retry a call that could burn a number of a gapless series.

mod address;
mod answer;
mod attempts;
mod lines;
mod tls;

use std::time::Duration;

use bates_api::Path;
use bates_process::ProcessGuard;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

pub(crate) use self::address::Address;
use self::answer::{Attempt, Failed, unexpected};
use self::attempts::Attempts;
pub(crate) use self::attempts::RetrySettings;
pub use self::lines::LineAnswers;
pub(crate) use self::tls::config;
use crate::error::Error;

/// Well below the minute after which a server closes an idle connection, which could leave a call in doubt.
const IDLE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Retry<'a> {
    /// Whenever it may help: the call is idempotent.
    Freely,
    /// The call takes numbers of this series. After an attempt that may have burned some, only if it may have gaps.
    UnlessGapless(&'a str),
    /// Only if the connection failed: a restarted server may have closed it.
    IfBroken,
}

pub(crate) struct Call<'a> {
    method: Method,
    path: Path,
    kind: Option<&'static str>,
    key: Option<HeaderValue>,
    body: Vec<u8>,
    retry: Retry<'a>,
    within: Option<Duration>,
}

pub(crate) struct Transport {
    client: reqwest::Client,
    address: Address,
    secret: Option<HeaderValue>,
    pub(crate) settings: RetrySettings,
    process: ProcessGuard,
}

impl<'a> Call<'a> {
    pub(crate) fn get(path: Path) -> Self {
        let (method, retry) = (Method::GET, Retry::Freely);
        Self { method, path, kind: None, key: None, body: Vec::new(), retry, within: None }
    }

    pub(crate) fn post(path: Path, retry: Retry<'a>) -> Self {
        Self { method: Method::POST, retry, ..Self::get(path) }
    }

    pub(crate) fn delete(path: Path, retry: Retry<'a>) -> Self {
        Self { method: Method::DELETE, retry, ..Self::get(path) }
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(|problem| Error::invalid("body", problem.to_string()))?;
        Ok(self.body("application/json", body))
    }

    pub(crate) fn body(self, kind: &'static str, body: Vec<u8>) -> Self {
        Self { kind: Some(kind), body, ..self }
    }

    /// Overrides the total time of the transport.
    pub(crate) fn within(self, time: Duration) -> Self {
        Self { within: Some(time), ..self }
    }

    fn takes_numbers(&self) -> bool {
        matches!(self.retry, Retry::UnlessGapless(_))
    }

    pub(crate) fn key(self, key: &str) -> Result<Self, Error> {
        // Quoted, so that no part is trimmed or taken for a quote.
        let key = HeaderValue::from_str(&format!("\"{key}\""));
        let key = key.map_err(|_| Error::invalid("idempotency key", "a header cannot hold it"))?;
        Ok(Self { key: Some(key), retry: Retry::Freely, ..self })
    }
}

impl Transport {
    pub(crate) fn new(
        address: Address,
        secret: Option<HeaderValue>,
        tls: rustls::ClientConfig,
        settings: RetrySettings,
    ) -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .tls_backend_preconfigured(tls)
            .connect_timeout(settings.connect)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|problem| Error::invalid("address of Bates", problem.to_string()))?;
        Ok(Self { client, address, secret, settings, process: ProcessGuard::default() })
    }

    pub(crate) fn host(&self) -> &str {
        &self.address.host
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: Path) -> Result<T, Error> {
        self.call(Call::get(path)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: Path,
        body: &impl Serialize,
        retry: Retry<'_>,
    ) -> Result<T, Error> {
        self.call(Call::post(path, retry).json(body)?).await
    }

    pub(crate) async fn call<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Error> {
        let takes_numbers = call.takes_numbers();
        let answer = self.bytes(call).await?;
        serde_json::from_slice(&answer)
            .map_err(|problem| self.unexpected(&problem.to_string(), takes_numbers))
    }

    pub(crate) fn unexpected(&self, reason: &str, may_burn: bool) -> Error {
        unexpected(self.host(), 200, reason, may_burn)
    }

    pub(crate) async fn bytes(&self, call: Call<'_>) -> Result<Vec<u8>, Error> {
        // A forked process shares the connections of its parent, and would read its answers.
        let answer = self.process.unless_forked(self.bytes_here(call)).await;
        let reason = "this process was forked from the one that built it: build a client here";
        answer.unwrap_or_else(|| Err(Error::invalid("client", reason)))
    }

    async fn bytes_here(&self, call: Call<'_>) -> Result<Vec<u8>, Error> {
        let url = self.address.url(&call.path)?;
        let RetrySettings { total, answer, .. } = self.settings;
        let (total, answer) = (call.within.unwrap_or(total), call.within.unwrap_or(answer));
        let mut attempts = Attempts::new(RetrySettings { total, answer, ..self.settings });
        let mut is_burned = false;
        let mut may_burn = !call.takes_numbers();
        loop {
            let Failed { error, can_retry, after } = match self.attempt(&url, &call, attempts.left()).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            is_burned |= error.may_burn();
            let can_retry = can_retry
                && (!matches!(call.retry, Retry::IfBroken) || matches!(error, Error::NoAnswer { .. }));
            if !attempts.wait(can_retry, after).await {
                return Err(error.with_attempts(attempts.count, is_burned));
            }
            // Invariant: after an attempt that may have burned numbers, the promise must be known before the next.
            if is_burned && !may_burn {
                may_burn = self.may_have_gaps(call.retry, &mut attempts).await;
                if !may_burn {
                    return Err(error.with_attempts(attempts.count, is_burned));
                }
            }
        }
    }

    /// Asks the server each time: the promise may have changed in the restart that broke the call.
    async fn may_have_gaps(&self, retry: Retry<'_>, attempts: &mut Attempts) -> bool {
        let Retry::UnlessGapless(series) = retry else { return true };
        let Ok(path) = Path::v1(["series", series]) else { return false };
        let call = Call::get(path);
        let Ok(url) = self.address.url(&call.path) else { return false };
        loop {
            match self.attempt(&url, &call, attempts.left()).await {
                Ok(answer) => {
                    let series: Value = serde_json::from_slice(&answer).unwrap_or_default();
                    return series["promise"].as_str().is_some_and(|promise| promise != "gapless");
                }
                Err(failed) if attempts.wait(failed.can_retry, failed.after).await => {}
                Err(_) => return false,
            }
        }
    }

    async fn attempt(&self, url: &Url, call: &Call<'_>, until: Duration) -> Result<Vec<u8>, Failed> {
        let attempt = Attempt { host: self.host(), takes_numbers: call.takes_numbers() };
        let exchange = async {
            let answer = self.send(url, call).await.map_err(|error| attempt.unsent(&error))?;
            attempt.read(answer).await
        };
        timeout(until, exchange).await.unwrap_or_else(|_| Err(attempt.late(until)))
    }

    async fn send(&self, url: &Url, call: &Call<'_>) -> reqwest::Result<Response> {
        let mut request = self.request(&call.method, url);
        if let Some(kind) = call.kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        if let Some(key) = &call.key {
            request = request.header("Idempotency-Key", key);
        }
        request.body(call.body.clone()).send().await
    }

    fn request(&self, method: &Method, url: &Url) -> RequestBuilder {
        let request = self.client.request(method.clone(), url.clone());
        match &self.secret {
            Some(secret) => request.header(AUTHORIZATION, secret),
            None => request,
        }
    }
}

//! A webhook: a signed request for each document. Must never follow a redirect, and never wait without a timeout.

mod answer;
mod guard;
mod signature;

use std::path::PathBuf;
use std::time::Duration;

use bates_connect::{Trust, client_config, root_certificates};
use bates_core::{
    DeliverEachFuture, DeliverFuture, Delivery, DeliveryError, DeliveryOutcomes, Runtime as _, Sink,
    SystemRuntime, deliver_through_each,
};
use futures_util::{StreamExt as _, stream};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url, redirect};
use serde::Deserialize;

use self::guard::Guard;
use self::signature::Signer;
use crate::description::{SinkError, check_timeout, parse_url, timeout_ms};
use crate::payload;
use crate::secret::{self, Secret};

const CONCURRENCY_MAX: usize = 256;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookDescription {
    /// May hold a token in its path, which is never shown.
    pub url: Secret,
    /// `whsec_` and base64. During a rotation, several secrets with spaces between them.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// A file that holds the secret, instead of `secret`.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// Whether the address may be private, and without TLS.
    #[serde(default)]
    pub allow_private: bool,
    /// For a request and its answer.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default = "concurrency")]
    pub concurrency: usize,
}

/// Default number of concurrent requests.
const fn concurrency() -> usize {
    16
}

pub(crate) fn open(description: &WebhookDescription) -> Result<impl Sink, SinkError> {
    let WebhookDescription { secret, secret_file, allow_private, timeout_ms, concurrency, .. } = description;
    let url = checked_url(description)?;
    let (secret, file) = (secret.as_ref(), secret_file.as_deref());
    let secret = secret::read_secret(secret, file, "webhook.secret", "webhook.secret_file")?;
    let wrong = |problem: Box<str>| SinkError::new("webhook.secret", problem);
    let secret = secret.ok_or_else(|| wrong("missing: set secret or secret_file".into()))?;
    let signer = Signer::new(&secret).map_err(wrong)?;
    check_timeout("webhook.timeout_ms", *timeout_ms)?;
    if !(1..=CONCURRENCY_MAX).contains(concurrency) {
        let problem = format!("{concurrency} is out of range: expected 1 to {CONCURRENCY_MAX}");
        return Err(SinkError::new("webhook.concurrency", problem));
    }
    let client = client(*allow_private, Duration::from_millis(*timeout_ms))
        .map_err(|problem| SinkError::new("webhook.url", problem))?;
    Ok(Webhook { client, url, signer, concurrency: *concurrency })
}

fn checked_url(description: &WebhookDescription) -> Result<Url, SinkError> {
    let wrong = |problem: &str| SinkError::new("webhook.url", problem);
    let url = parse_url(&description.url, "webhook.url", "requests are signed instead")?;
    match url.scheme() {
        "https" => {}
        "http" if description.allow_private => {}
        "http" => return Err(wrong("expected https://; http:// needs allow_private: true")),
        _ => return Err(wrong("expected an address that begins with https://")),
    }
    if !description.allow_private && guard::is_private_literal(&url) {
        return Err(wrong("the address is private: set allow_private: true to allow it"));
    }
    Ok(url)
}

fn origin(url: &Url) -> String {
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Ignores proxies of the environment: a proxy would connect to addresses that the guard did not check.
fn client(allow_private: bool, timeout: Duration) -> Result<Client, Box<str>> {
    let builder = Client::builder()
        .tls_backend_preconfigured(root_certificates(&Trust::System).and_then(client_config)?)
        .dns_resolver(Guard { allow_private })
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT.min(timeout))
        .timeout(timeout)
        .user_agent(concat!("bates/", env!("CARGO_PKG_VERSION")));
    builder.build().map_err(|error| error.without_url().to_string().into())
}

struct Webhook {
    client: Client,
    url: Url,
    signer: Signer,
    concurrency: usize,
}

impl Webhook {
    async fn post(&self, delivery: &Delivery) -> Result<(), DeliveryError> {
        let body = payload::event(delivery)?;
        let id = delivery.document_id.to_string();
        let timestamp = SystemRuntime.now().as_second();
        let signature = self.signer.sign(&id, timestamp, &body);
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body);
        match request.send().await {
            Ok(response) => answer::classify_response(response).await,
            Err(error) => Err(answer::classify_error(error)),
        }
    }
}

impl Sink for Webhook {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        deliver_through_each(self, deliveries)
    }

    fn deliver_each<'a>(
        &'a self,
        deliveries: &'a [Delivery],
        outcomes: &'a DeliveryOutcomes,
    ) -> DeliverEachFuture<'a> {
        let each = stream::iter(deliveries.iter().enumerate());
        Box::pin(each.for_each_concurrent(self.concurrency, async |(index, delivery)| {
            outcomes.report(index, self.post(delivery).await);
        }))
    }

    /// Equal to the concurrency, so that a receiver that hangs delays a batch by one timeout, not by several.
    fn batch_max(&self) -> usize {
        self.concurrency
    }

    fn describe(&self) -> String {
        format!("webhook {}", origin(&self.url))
    }
}

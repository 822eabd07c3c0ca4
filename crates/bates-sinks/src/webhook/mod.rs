//! A webhook: a signed request for each document. Owns the description and the deliveries. Must never follow a
//! redirect, and never wait without an end.

mod answer;
mod guard;
mod signature;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bates_connect::{Trust, client_config, root_certificates};
use bates_core::{DeliveringEach, Delivery, Outcomes, Runtime, Sink, Undelivered};
use futures_util::{StreamExt as _, stream};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url, redirect};
use serde::Deserialize;

use self::guard::Guard;
use self::signature::Signer;
use crate::description::{SinkError, check_timeout, timeout_ms};
use crate::payload;
use crate::secret::{self, Secret};

const CONCURRENCY_MAX: usize = 256;
/// A server that is not there at all is not waited for any longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A webhook as it is described.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookDescription {
    /// Where requests go. It may hold a token and is shown without its path, if at all.
    pub url: Secret,
    /// `whsec_` and base64; several with spaces between them while one takes over from another.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// A file with the secret instead.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// Whether it may be at an address that only this network reaches, and without TLS.
    #[serde(default)]
    pub allow_private: bool,
    /// How long a request may last, with its answer.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// How many requests are under way at once.
    #[serde(default = "concurrency")]
    pub concurrency: usize,
}

/// Requests under way at once if nobody says otherwise.
const fn concurrency() -> usize {
    16
}

pub(crate) fn open(
    description: &WebhookDescription,
    clock: Arc<dyn Runtime>,
) -> Result<impl Sink, SinkError> {
    let WebhookDescription { secret, secret_file, allow_private, timeout_ms, concurrency, .. } = description;
    let url = address(description)?;
    let given =
        secret::given(secret.as_ref(), secret_file.as_deref(), "webhook.secret", "webhook.secret_file")?;
    let secret =
        given.ok_or_else(|| SinkError::new("webhook.secret", "give a secret, or a secret_file with one"))?;
    let signer = Signer::new(&secret).map_err(|problem| SinkError::new("webhook.secret", problem))?;
    check_timeout("webhook.timeout_ms", *timeout_ms)?;
    if !(1..=CONCURRENCY_MAX).contains(concurrency) {
        return Err(SinkError::new("webhook.concurrency", format!("it is between 1 and {CONCURRENCY_MAX}")));
    }
    let client = client(*allow_private, Duration::from_millis(*timeout_ms))
        .map_err(|problem| SinkError::new("webhook.url", problem))?;
    Ok(Webhook { client, url, signer, concurrency: *concurrency, clock })
}

fn address(description: &WebhookDescription) -> Result<Url, SinkError> {
    let wrong = |problem: &str| SinkError::new("webhook.url", problem);
    // The error of the parser tells the reason and nothing of the address.
    let url = Url::parse(description.url.reveal())
        .map_err(|error| SinkError::new("webhook.url", format!("this is no address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user or a password; requests are signed instead"));
    }
    match url.scheme() {
        "https" => {}
        "http" if description.allow_private => {}
        "http" => return Err(wrong("it begins with https://; http:// needs allow_private: true")),
        _ => return Err(wrong("it begins with https://")),
    }
    if !description.allow_private && guard::is_private_literal(&url) {
        return Err(wrong("this is a private address; if that is meant, say allow_private: true"));
    }
    Ok(url)
}

fn origin(url: &Url) -> String {
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// A client that reads nothing from the environment: a proxy would connect to what the guard never saw.
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
    clock: Arc<dyn Runtime>,
}

impl Webhook {
    async fn post(&self, delivery: &Delivery) -> Result<(), Undelivered> {
        let body = payload::event(delivery)?;
        let id = delivery.event.to_string();
        let timestamp = self.clock.now().as_second();
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
            Ok(response) => answer::judge(response).await,
            Err(error) => Err(answer::unreached(error)),
        }
    }
}

impl Sink for Webhook {
    fn deliver_each<'a>(&'a self, deliveries: &'a [Delivery], outcomes: &'a Outcomes) -> DeliveringEach<'a> {
        let each = stream::iter(deliveries.iter().enumerate());
        Box::pin(each.for_each_concurrent(self.concurrency, async |(at, delivery)| {
            outcomes.tell(at, self.post(delivery).await);
        }))
    }

    /// As many as are under way at once: a server that hangs holds up a batch for one timeout, not for several.
    fn batch_max(&self) -> usize {
        self.concurrency
    }

    fn describe(&self) -> String {
        format!("webhook {}", origin(&self.url))
    }
}

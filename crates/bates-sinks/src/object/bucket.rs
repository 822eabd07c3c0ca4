//! A bucket with the S3 protocol: an object for each document. Must never take credentials from a description: they come
//! from the environment, or from the machine.

use std::time::Duration;

use bates_connect::{Trust, client_config, root_certificates};
use bates_core::{
    DeliverEachFuture, DeliverFuture, Delivery, DeliveryError, DeliveryOutcomes, Sink, deliver_through_each,
};
use futures_util::{StreamExt as _, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    ClientConfigKey, ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind,
};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _, RetryConfig};
use reqwest::{Client, Url};

use super::{FIELD, path};
use crate::description::SinkError;
use crate::payload;

const BATCH_MAX: usize = 256;
const CONCURRENCY: usize = 32;
const PREFIX_BYTES_MAX: usize = 200;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Of one request. With one retry, both must end before the claim of a document does.
const TIMEOUT: Duration = Duration::from_secs(12);

pub(super) struct Bucket {
    store: AmazonS3,
    name: String,
    prefix: String,
}

impl Bucket {
    pub(super) fn open(url: &Url) -> Result<Self, SinkError> {
        Self::with(AmazonS3Builder::from_env(), url)
    }

    fn with(builder: AmazonS3Builder, url: &Url) -> Result<Self, SinkError> {
        let wrong = |problem: String| SinkError::new(FIELD, problem);
        let bucket = url.host_str().filter(|bucket| !bucket.is_empty());
        let bucket = bucket.ok_or_else(|| wrong("expected s3://bucket/prefix".into()))?;
        let prefix = Path::from_url_path(url.path()).map_err(|error| wrong(error.to_string()))?;
        if prefix.as_ref().len() > PREFIX_BYTES_MAX {
            return Err(wrong(format!("the path has more than {PREFIX_BYTES_MAX} bytes")));
        }
        // One retry here; the relay decides when the next attempt is due.
        let retry = RetryConfig { max_retries: 1, retry_timeout: TIMEOUT, ..RetryConfig::default() };
        let builder = builder.with_bucket_name(bucket).with_retry(retry).with_http_connector(Connector);
        let store = builder.build().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { store, name: bucket.to_owned(), prefix: prefix.to_string() })
    }

    async fn put(&self, delivery: &Delivery) -> Result<(), DeliveryError> {
        let content = payload::data(delivery)?;
        let key = format!("{}/{}/{}", self.prefix, path::folder(delivery), path::file(delivery));
        let key = Path::parse(key).map_err(|error| DeliveryError::Refused(error.to_string().into()))?;
        self.store.put(&key, content.into()).await.map(drop).map_err(|error| undelivered(&error))
    }
}

impl Sink for Bucket {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        deliver_through_each(self, deliveries)
    }

    fn deliver_each<'a>(
        &'a self,
        deliveries: &'a [Delivery],
        outcomes: &'a DeliveryOutcomes,
    ) -> DeliverEachFuture<'a> {
        let each = stream::iter(deliveries.iter().enumerate());
        Box::pin(each.for_each_concurrent(CONCURRENCY, async |(at, delivery)| {
            outcomes.report(at, self.put(delivery).await);
        }))
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn describe(&self) -> String {
        format!("bucket s3://{}/{}", self.name, self.prefix)
    }
}

/// A bucket that refuses one object refuses all of them: it is missing, forbidden or full.
fn undelivered(error: &Error) -> DeliveryError {
    match error {
        Error::InvalidPath { .. } => DeliveryError::Refused(error.to_string().into()),
        _ if is_unanswered(error) => DeliveryError::Unanswered(error.to_string().into()),
        _ => DeliveryError::Unavailable(error.to_string().into()),
    }
}

fn is_unanswered(error: &Error) -> bool {
    let mut sources = std::iter::successors(std::error::Error::source(error), |&error| error.source());
    let http = sources.find_map(|error| error.downcast_ref::<HttpError>());
    http.is_some_and(|http| http.kind() != HttpErrorKind::Connect)
}

/// Gives clients our TLS settings: by default `object_store` takes a provider from the process.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        type Source = Box<dyn std::error::Error + Send + Sync>;
        let failed = |source: Source| Error::Generic { store: "S3", source };
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let tls = root_certificates(&Trust::System).and_then(client_config);
        let tls = tls.map_err(|problem| failed(String::from(problem).into()))?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(!allow_http)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| failed(error.into()))?;
        Ok(HttpClient::new(client))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::body::Bytes;
    use axum::extract::State;
    use axum::http::{HeaderMap, Method, StatusCode, Uri};
    use axum::response::IntoResponse;
    use parking_lot::Mutex;
    use tokio::net::TcpListener;

    use super::*;

    type Objects = Arc<Mutex<Vec<(String, Bytes)>>>;

    /// Accepts signed requests, except into the bucket `full`.
    async fn put(
        State(objects): State<Objects>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> impl IntoResponse {
        let signed = |value: &axum::http::HeaderValue| value.as_bytes().starts_with(b"AWS4-HMAC-SHA256 ");
        if method != Method::PUT || !headers.get("authorization").is_some_and(signed) {
            return (StatusCode::FORBIDDEN, [("etag", "none")]);
        }
        if uri.path().starts_with("/full/") {
            return (StatusCode::INSUFFICIENT_STORAGE, [("etag", "none")]);
        }
        objects.lock().push((uri.path().to_owned(), body));
        (StatusCode::OK, [("etag", "some")])
    }

    fn delivery(body: &str) -> Delivery {
        Delivery { number: "N-1".into(), ..payload::tests::delivery("project=a/b", body) }
    }

    #[tokio::test]
    async fn an_object_is_put_at_its_path_and_a_full_bucket_is_unavailable() {
        let objects = Objects::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(put).with_state(Arc::clone(&objects));
        tokio::spawn(axum::serve(listener, router).into_future());
        let bucket = |url: &str| {
            let builder = AmazonS3Builder::new().with_endpoint(&endpoint).with_allow_http(true);
            let builder = builder.with_access_key_id("id").with_secret_access_key("hunter2");
            Bucket::with(builder, &Url::parse(url).unwrap()).unwrap()
        };
        let sink = bucket("s3://archive/some/prefix");
        let answers = sink.deliver(&[delivery("{}"), delivery("{")]).await;
        assert!(answers[0].is_ok() && matches!(answers[1], Err(DeliveryError::Refused(_))), "{answers:?}");
        let (path, body) = objects.lock().pop().unwrap();
        assert_eq!(path, "/archive/some/prefix/document/project%3Da%252Fb/N-1.json");
        assert_eq!(body, payload::data(&delivery("{}")).unwrap());
        assert_eq!(sink.describe(), "bucket s3://archive/some/prefix");

        let answers = bucket("s3://full").deliver(&[delivery("{}")]).await;
        assert!(matches!(answers[0], Err(DeliveryError::Unavailable(_))), "{answers:?}");
        assert!(!format!("{answers:?}").contains("hunter2"));
    }
}

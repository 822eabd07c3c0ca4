//! TLS: the client trusts a server only if a trusted authority signed its certificate.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bates_client::{Client, ClientBuilder, Error};
use bates_testkit::certificates;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Stage;
use super::proxy::Proxy;

fn tls(folder: &Path) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(folder.join("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

#[tokio::test]
async fn only_a_client_that_trusts_the_authority_talks_to_the_server() {
    let (ours, theirs) = (certificates(), certificates());
    let stage = Stage::with(&[("BATES_SECRET", "open sesame")]);
    let proxy = Proxy::start_tls(stage.server.http, tls(ours.path()));
    let to = |host: &str| Client::builder(format!("https://{host}:{}", proxy.port)).secret("open sesame");
    let trusting = |builder: ClientBuilder, folder: &Path| {
        builder.authority(fs::read(folder.join("ca.pem")).unwrap()).build().unwrap()
    };
    let client = trusting(to("localhost"), ours.path());
    assert_eq!(client.series("ticket").next().await.unwrap(), "T-1");
    assert_eq!(client.series("ticket").take(3).await.unwrap().len(), 3);
    for (distrusting, why) in [
        (trusting(to("localhost"), theirs.path()), "invalid peer certificate"),
        (to("localhost").build().unwrap(), "UnknownIssuer"),
        (trusting(to("127.0.0.1"), ours.path()), "not valid for name"),
    ] {
        let error = distrusting.series("ticket").next().await.unwrap_err();
        assert!(matches!(error, Error::Untrusted { .. }) && !error.is_retryable(), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(
        proxy.seen().len(),
        2,
        "a client that does not trust the server sends nothing, not even its secret"
    );
    let plain = Client::builder(format!("http://localhost:{}", proxy.port));
    let plain = plain.attempts(1).answer_timeout(Duration::from_mins(1)).build().unwrap();
    assert!(plain.series("ticket").next().await.is_err());
}

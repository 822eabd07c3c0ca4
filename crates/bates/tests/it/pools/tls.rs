//! A Redis with a password and TLS.

use std::net::TcpListener;
use std::path::Path;

use bates_testkit::certificates;

use super::{Home, Redis, series};

/// Configures a Redis to require a password and to accept TLS on this port.
fn secure(redis: &Redis, folder: &Path, port: u16) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key, authority) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let _: String = redis.command(&[
        "CONFIG",
        "SET",
        "tls-cert-file",
        &certificate,
        "tls-key-file",
        &key,
        "tls-ca-cert-file",
        &authority,
        "tls-auth-clients",
        "no",
        "tls-port",
        &port.to_string(),
        "requirepass",
        "geheim",
    ]);
}

#[test]
fn a_pool_over_tls_is_filled_only_with_the_right_password_and_no_log_shows_it() {
    let (home, redis) = (Home::folder(), Redis::start());
    let folder = certificates();
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    secure(&redis, folder.path(), port);
    let authority = folder.path().join("ca.pem");
    let trust = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let url = |password: &str| format!("rediss://:{password}@localhost:{port}");
    let plain_url = format!("redis://:geheim@127.0.0.1:{}", redis.server.port());
    let level = || Redis::try_command::<u64>(&plain_url, &["LLEN", "pool:A"]).unwrap();
    let wrong = home.start_with(&series(&url("verraten"), "size: 10", "{ p: A }"), &trust);
    let body = r#"{"scope":{"p":"A"},"run_id":"x","replication_id":"y"}"#;
    let (status, answer) = crate::http::ask(wrong.http, "POST", "/v1/series/ticket/pool/attach", body);
    assert_eq!((status, answer["code"].as_str()), (503, Some("pool_unavailable")));
    assert_eq!(level(), 0);
    let printed = format!("{answer} {}", wrong.stop());
    assert!(printed.contains("cannot be watched") && !printed.contains("verraten"), "{printed}");
    let server = home.start_with(&series(&url("geheim"), "size: 10", "{ p: A }"), &trust);
    while level() < 10 {
        std::thread::yield_now();
    }
    let log = server.stop();
    assert!(!log.contains("geheim"), "{log}");
}

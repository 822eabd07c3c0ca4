//! A Redis that asks for a password, and speaks TLS.

use std::net::TcpListener;
use std::path::Path;

use bates_testkit::certificates;

use super::{Home, Redis, series};

/// Has a server ask for a password and speak TLS on this port, too.
fn guard(redis: &Redis, folder: &Path, port: u16) {
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
fn a_pool_is_filled_over_tls_with_a_password_and_not_without_and_no_log_shows_it() {
    let (home, redis) = (Home::folder(), Redis::start());
    let folder = certificates();
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    guard(&redis, folder.path(), port);
    let authority = folder.path().join("ca.pem");
    let trusts = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let url = |password: &str| format!("rediss://:{password}@localhost:{port}");
    let inside = format!("redis://:geheim@127.0.0.1:{}", redis.server.port());
    let level = || Redis::try_command::<u64>(&inside, &["LLEN", "pool:A"]).unwrap();
    let wrong = home.start_with(&series(&url("verraten"), "size: 10", "{ p: A }"), &trusts);
    let asked = r#"{"scope":{"p":"A"},"run_id":"x","replication_id":"y"}"#;
    let (status, answer) = crate::http::ask(wrong.http, "POST", "/v1/series/ticket/pool/attach", asked);
    assert_eq!((status, answer["code"].as_str()), (503, Some("pool_unavailable")));
    assert_eq!(level(), 0);
    let said = format!("{answer} {}", wrong.stop());
    assert!(said.contains("cannot be watched") && !said.contains("verraten"), "{said}");
    let server = home.start_with(&series(&url("geheim"), "size: 10", "{ p: A }"), &trusts);
    while level() < 10 {
        std::thread::yield_now();
    }
    let said = server.stop();
    assert!(!said.contains("geheim"), "{said}");
}

//! Connections that send something else than a handshake, or never finish one.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::super::http::exchange;
use super::Site;

#[test]
fn plain_text_to_an_encrypted_port_is_closed_and_harms_nothing() {
    let site = Site::start(&[]);
    for _ in 0..3 {
        let (status, ..) = exchange(site.server.http, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(status, 0, "no answer in plain text");
        let mut redis = TcpStream::connect(("127.0.0.1", site.server.port)).unwrap();
        redis.write_all(b"INCR counter:a\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = redis.read_to_end(&mut answer);
        assert!(!answer.starts_with(b":"), "{answer:?}");
    }
    let mut client = site.connect(site.server.port, None);
    assert_eq!(client.ask("INCR counter:a").unwrap(), ":1", "plain text took no number");
    assert_eq!(site.connect(site.server.http, None).request("GET /healthz", "").unwrap().0, 200);
    site.server.stop();
}

#[test]
fn clients_that_stall_in_the_handshake_hold_up_neither_others_nor_a_stop() {
    let site = Site::start(&[]);
    let mut stalled = Vec::new();
    for port in [site.server.port, site.server.http] {
        for bytes in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(bytes).unwrap();
            stalled.push(stream);
        }
    }
    assert_eq!(site.connect(site.server.port, None).ask("INCR counter:a").unwrap(), ":1");
    assert_eq!(site.connect(site.server.http, None).request("GET /readyz", "").unwrap().0, 200);
    assert!(site.server.stop().contains("stopped"));
    for mut stream in stalled {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "the server closed it");
    }
}

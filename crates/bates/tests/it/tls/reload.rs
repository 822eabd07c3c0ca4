//! A certificate that changes while the server runs.

use std::fs;

use bates_testkit::sign_certificate;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::Site;

#[test]
fn a_changed_certificate_is_used_and_a_broken_one_is_not() {
    let mut site = Site::start(&[]);
    let certificate = |site: &Site, name| CertificateDer::from_pem_file(site.path(name)).unwrap();
    let first = certificate(&site, "server.pem");
    let mut early = site.connect(site.server.port, None);
    assert_eq!(early.ask("INCR counter:a").unwrap(), ":1");
    assert_eq!(early.server_certificate(), first);

    fs::write(site.path("server.key"), "this is no key").unwrap();
    let said = site.server.wait_until_it_said("was not replaced");
    assert!(said.contains("tls_key") && said.contains("server.key"), "{said}");
    for port in [site.server.port, site.server.http] {
        assert_eq!(site.connect(port, None).server_certificate(), first);
    }

    sign_certificate(site.certificates.path(), "next", "localhost", "DNS:localhost");
    fs::rename(site.path("next.pem"), site.path("server.pem")).unwrap();
    fs::rename(site.path("next.key"), site.path("server.key")).unwrap();
    site.server.wait_until_it_said("the TLS certificate was replaced");
    let second = certificate(&site, "server.pem");
    assert_ne!(second, first);
    for port in [site.server.port, site.server.http] {
        assert_eq!(site.connect(port, None).server_certificate(), second);
    }
    assert_eq!(early.ask("INCR counter:a").unwrap(), ":2", "an open connection goes on");

    fs::remove_file(site.path("server.pem")).unwrap();
    site.server.wait_until_it_said("was not replaced");
    assert_eq!(site.connect(site.server.port, None).server_certificate(), second);
    site.server.stop();
}

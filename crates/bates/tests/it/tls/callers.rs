//! Client certificates: a verified one names its caller, any other one opens nothing.

use bates_testkit::{certificates, sign_certificate};

use super::Site;

const TOKENS: [(&str, &str); 6] = [
    ("BATES_SECRET", "shared"),
    ("BATES_TOKENS__REGISTRY__CERTIFICATE", "spiffe://example.com/registry"),
    ("BATES_TOKENS__CLINIC__CERTIFICATE", "clinic.example.com"),
    ("BATES_TOKENS__CLINIC__SECRET", "two"),
    ("BATES_TOKENS__CLINIC__MAY", "read,take"),
    ("BATES_TOKENS__REGISTRY__MAY", "read,take"),
];

#[test]
fn a_verified_certificate_is_the_caller_of_its_token_on_both_ports() {
    let site = Site::start(&TOKENS);
    let folder = site.certificates.path();
    for (file, common_name, names) in [
        ("registry", "anything", "DNS:other.example.com,URI:spiffe://example.com/registry"),
        ("clinic", "clinic.example.com", "IP:10.0.0.7,email:a@example.com"),
        ("stranger", "stranger", "DNS:registry"),
    ] {
        sign_certificate(folder, file, common_name, names);
    }
    for (file, number) in [("registry", 1), ("clinic", 3)] {
        let (_, answer) = site
            .connect(site.server.http, Some((folder, file)))
            .request("POST /v1/series/n/next", "")
            .unwrap();
        assert!(answer.contains(&format!("N-{number}")), "{answer}");
        let mut redis = site.connect(site.server.port, Some((folder, file)));
        assert_eq!(redis.ask("LPOP n").unwrap(), "$3");
    }
    for identity in [None, Some((folder, "stranger"))] {
        let answer = site.connect(site.server.http, identity).request("POST /v1/series/n/next", "").unwrap();
        assert_eq!(answer.0, 401, "{identity:?}");
        assert!(site.connect(site.server.port, identity).ask("LPOP n").unwrap().starts_with("-NOAUTH"));
    }
    // A secret is stronger than the certificate, also a wrong one.
    let ask = |headers: &str| {
        site.connect(site.server.http, Some((folder, "registry"))).request("POST /v1/series/n/next", headers)
    };
    assert_eq!(ask("Authorization: Bearer wrong\r\n").unwrap().0, 401);
    assert_eq!(ask("Authorization: Bearer two\r\n").unwrap().0, 200);
    let mut redis = site.connect(site.server.port, Some((folder, "registry")));
    assert_eq!(redis.ask("AUTH clinic two").unwrap(), "+OK");
    assert_eq!(redis.ask("RESET").unwrap(), "+RESET");
    assert_eq!(redis.ask("LPOP n").unwrap(), "$3", "the certificate still counts after a reset");

    let audit = site.connect(site.server.http, None);
    let (_, answer) = { audit }.request("GET /v1/audit", "Authorization: Bearer shared\r\n").unwrap();
    let found: Vec<&str> =
        answer.split("\"who\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(found, ["registry", "registry", "clinic", "clinic", "clinic", "registry"], "{answer}");
    site.server.stop();
}

#[test]
fn a_certificate_of_another_authority_is_refused_whatever_its_name() {
    let (site, other) = (Site::start(&TOKENS), certificates());
    sign_certificate(other.path(), "registry", "registry", "URI:spiffe://example.com/registry");
    let forged = Some((other.path(), "registry"));
    assert_eq!(site.connect(site.server.port, forged).ask("LPOP n"), None);
    assert_eq!(site.connect(site.server.http, forged).request("POST /v1/series/n/next", ""), None);
    let (_, answer) = site
        .connect(site.server.http, None)
        .request("POST /v1/series/n/next", "Authorization: Bearer shared\r\n")
        .unwrap();
    assert!(answer.contains("N-1\""), "the forged certificate took nothing: {answer}");
}

//! TLS of the ports: the PEM files, and whether plain text may leave this machine.

use std::net::SocketAddr;

use bates_server::TlsFiles;

use super::reader::Reader;
use super::tree::{Node, Value};

/// What protects the ports.
pub(super) struct Transport {
    pub(super) files: Option<TlsFiles>,
    is_plaintext_allowed: bool,
}

impl Transport {
    pub(super) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let is_plaintext_allowed = match reader.text("plaintext") {
            None => false,
            Some("allowed") => true,
            Some(_) => {
                reader.add_mistake("plaintext", "plaintext: expected allowed; without the key it is refused");
                false
            }
        };
        Self { files: read_files(reader), is_plaintext_allowed }
    }

    /// Without TLS only loopback is accepted: elsewhere others could read secrets and numbers.
    pub(super) fn check(&self, reader: &mut Reader<'_, '_>, ports: [(&str, Option<SocketAddr>); 2]) {
        if self.is_plaintext_allowed || has_files(reader.tree) {
            return;
        }
        for (key, address) in ports {
            let Some(address) = address.filter(|address| !address.ip().is_loopback()) else { continue };
            let problem = format!(
                "{key}: others could read secrets and numbers at {address}: set tls_certificate and tls_key, or plaintext: \
                 allowed (BATES_PLAINTEXT=allowed) if the network is trusted or a proxy in front encrypts"
            );
            reader.add_mistake(key, problem);
        }
    }
}

/// Whether either file is named. If the other is missing, that is the mistake to report.
fn has_files(tree: &Node) -> bool {
    ["tls_certificate", "tls_key"].iter().any(|key| tree.get(key).is_some())
}

fn read_files(reader: &mut Reader<'_, '_>) -> Option<TlsFiles> {
    let client_authority = reader.text("tls_client_ca").map(Into::into);
    let files = match (reader.text("tls_certificate"), reader.text("tls_key")) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.into(), key: key.into(), client_authority })
        }
        (Some(_), None) => {
            reader
                .add_mistake("tls_certificate", "tls_certificate needs tls_key, the file of its private key");
            None
        }
        (None, Some(_)) => {
            reader.add_mistake("tls_key", "tls_key needs tls_certificate, the file of the certificate");
            None
        }
        (None, None) if client_authority.is_some() => {
            reader.add_mistake("tls_client_ca", "tls_client_ca needs tls_certificate and tls_key");
            None
        }
        (None, None) => None,
    };
    if reader.tree.get("tls_client_ca").is_none() {
        refuse_certificates(reader);
    }
    files
}

/// Without an authority, no certificate of a client is ever verified.
fn refuse_certificates(reader: &mut Reader<'_, '_>) {
    let tokens = reader.tree.get("tokens").and_then(Node::entries).unwrap_or_default();
    for (name, token) in tokens {
        if let Some(node) = token.get("certificate")
            && !matches!(node.value, Value::Scalar(serde_json::Value::Null))
        {
            let problem =
                format!("tokens: {name}: certificate needs tls_client_ca, the file of its authority");
            reader.mistakes.add(&node.origin, problem);
        }
    }
}

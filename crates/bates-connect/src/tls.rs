//! TLS: rustls with ring. Accepts any certificate only if an address asks for that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Any certificate, as with `psql` and `sslmode=require`: the connection is encrypted, to any server.
    Any,
    /// A certificate for the host name from an authority of the system.
    System,
    /// A certificate for the host name from an authority in this file.
    File(PathBuf),
}

/// `None` accepts any certificate. A system may have no roots.
pub fn root_certificates(trust: &Trust) -> Result<Option<RootCertStore>, Box<str>> {
    match trust {
        Trust::Any => Ok(None),
        Trust::System => {
            let mut roots = RootCertStore::empty();
            // Unreadable certificates are skipped.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Ok(Some(roots))
        }
        Trust::File(path) => read_file(path).map(Some),
    }
}

fn read_file(path: &Path) -> Result<RootCertStore, Box<str>> {
    let refused = |error| format!("cannot read root certificates in {}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(refused)? {
        roots.add(certificate.map_err(refused)?).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err(format!("no root certificate in {}", path.display()).into());
    }
    Ok(roots)
}

/// Names its provider: the process may have none installed.
pub fn client_config(roots: Option<RootCertStore>) -> Result<ClientConfig, Box<str>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(match roots {
        Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
        None => {
            let any = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth()
        }
    })
}

/// Accepts any certificate, and still checks that the server holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

//! TLS to Bates: rustls with ring. Owns which authorities are trusted; must never accept an untrusted server.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;

/// Trusts the authorities of the system and of these PEM texts. Names its provider: the process may have none.
pub(crate) fn config(is_tls: bool, authorities: &[Vec<u8>]) -> Result<ClientConfig, Error> {
    let refused = |error: &dyn std::error::Error| Error::invalid("authority", error.to_string());
    let mut roots = RootCertStore::empty();
    if is_tls {
        // Those that cannot be read are skipped.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for pem in authorities {
        let count = roots.len();
        for authority in CertificateDer::pem_slice_iter(pem) {
            roots.add(authority.map_err(|error| refused(&error))?).map_err(|error| refused(&error))?;
        }
        if roots.len() == count {
            return Err(Error::invalid("authority", "it has no certificate in PEM"));
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Whether a connection failed because of the server's certificate. A retry does not help then.
pub(crate) fn is_distrust(error: &(dyn std::error::Error + 'static)) -> bool {
    // An I/O error does not name the error it carries as its source.
    let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || carried.is_some_and(|carried| is_distrust(carried))
        || error.source().is_some_and(is_distrust)
}

//! TLS to Bates: rustls with ring. Owns which authorities are trusted. Must never trust a server that proves nothing.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;

/// Trusts the authorities that the system knows, and these. Names its provider: the process may have none.
pub(crate) fn config(is_tls: bool, authorities: &[CertificateDer<'static>]) -> Result<ClientConfig, Error> {
    let refused = |error: rustls::Error| Error::wrong("authority", error.to_string());
    let mut roots = RootCertStore::empty();
    if is_tls {
        // Some that cannot be read are no reason to refuse those that can.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for authority in authorities {
        roots.add(authority.clone()).map_err(refused)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(refused)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The certificates of a PEM text, at least one.
pub(crate) fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| Error::wrong("authority", error.to_string()))?;
    if read.is_empty() { Err(Error::wrong("authority", "it is no PEM with a certificate")) } else { Ok(read) }
}

/// Whether a connection failed because of what the other side proved, or did not. That does not pass by itself.
pub(crate) fn is_distrust(error: &(dyn std::error::Error + 'static)) -> bool {
    // An error of input and output does not name what it carries as its source.
    let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || carried.is_some_and(|carried| is_distrust(carried))
        || error.source().is_some_and(is_distrust)
}

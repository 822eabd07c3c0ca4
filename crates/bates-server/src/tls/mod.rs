//! TLS of both ports: the certificate, its key and the authority of clients, read again while the server runs. Must
//! never replace a pair that works by one that does not, and never show a key.

mod handshake;
mod names;
mod stream;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

pub(crate) use handshake::accept;
pub(crate) use stream::Stream;

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, then those between it and its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Authorities of client certificates; `None`: clients are not asked for one.
    pub client_authority: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    #[error("{key}: cannot read {}: {reason}", file.display())]
    File { key: &'static str, file: PathBuf, reason: Box<str> },
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(Box<str>),
}

/// The files as last read.
pub struct Tls {
    files: TlsFiles,
    state: RwLock<State>,
}

struct State {
    contents: Contents,
    http: Arc<ServerConfig>,
    resp: Arc<ServerConfig>,
    /// Why the last reading was refused, and whether that was reported.
    refusal: Option<(TlsError, bool)>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authority: Option<Vec<u8>>,
}

impl Tls {
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let (http, resp) = configs(&files, &contents)?;
        Ok(Self { files, state: RwLock::new(State { contents, http, resp, refusal: None }) })
    }

    /// Reads the files again. Returns whether they changed and are used from now on. A refusal is returned once, and only
    /// if the next reading is refused for the same reason: the files may be replaced one after the other.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let reading = self.files.read().and_then(|contents| {
            if contents == self.state().contents {
                return Ok(None);
            }
            let (http, resp) = configs(&self.files, &contents)?;
            Ok(Some(State { contents, http, resp, refusal: None }))
        });
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match (reading, &mut state.refusal) {
            (Ok(Some(changed)), _) => {
                *state = changed;
                Ok(true)
            }
            (Ok(None), refusal) => {
                *refusal = None;
                Ok(false)
            }
            (Err(error), Some((known, is_reported))) if *known == error => {
                if std::mem::replace(is_reported, true) { Ok(false) } else { Err(error) }
            }
            (Err(error), refusal) => {
                *refusal = Some((error, false));
                Ok(false)
            }
        }
    }

    pub(crate) fn http(&self) -> Arc<ServerConfig> {
        self.state().http.clone()
    }

    pub(crate) fn resp(&self) -> Arc<ServerConfig> {
        self.state().resp.clone()
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Contents, TlsError> {
        let read = |key, file: &Path| std::fs::read(file).map_err(|error| file_error(key, file, &error));
        let client_authority = self.client_authority.as_deref();
        Ok(Contents {
            certificate: read("tls_certificate", &self.certificate)?,
            key: read("tls_key", &self.key)?,
            client_authority: client_authority.map(|file| read("tls_client_ca", file)).transpose()?,
        })
    }
}

fn file_error(key: &'static str, file: &Path, reason: &dyn fmt::Display) -> TlsError {
    TlsError::File { key, file: file.into(), reason: reason.to_string().into() }
}

/// The settings of the HTTP port and of the Redis port. Names the provider: the process may have none installed.
fn configs(
    files: &TlsFiles,
    contents: &Contents,
) -> Result<(Arc<ServerConfig>, Arc<ServerConfig>), TlsError> {
    let chain = certificates("tls_certificate", &files.certificate, &contents.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key)
        .map_err(|error| file_error("tls_key", &files.key, &error))?;
    let unusable = |error: rustls::Error| TlsError::Pair(error.to_string().into());
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match client_verifier(files, contents)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let resp = builder.with_single_cert(chain, key).map_err(unusable)?;
    let mut http = resp.clone();
    http.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(http), Arc::new(resp)))
}

/// A client may present a certificate, and need not. One of another authority ends the handshake.
fn client_verifier(
    files: &TlsFiles,
    contents: &Contents,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let (Some(file), Some(pem)) = (&files.client_authority, &contents.client_authority) else {
        return Ok(None);
    };
    let refused = |error: &dyn fmt::Display| file_error("tls_client_ca", file, error);
    let mut roots = RootCertStore::empty();
    for authority in certificates("tls_client_ca", file, pem)? {
        roots.add(authority).map_err(|error| refused(&error))?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    builder.allow_unauthenticated().build().map(Some).map_err(|error| refused(&error))
}

fn certificates(
    key: &'static str,
    file: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(file_error(key, file, &"it has no certificate in PEM")),
        Ok(chain) => Ok(chain),
        Err(error) => Err(file_error(key, file, &error)),
    }
}

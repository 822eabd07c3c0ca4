//! TLS of server processes: clients of every kind, a certificate that changes, connections that never finish their
//! handshake, and callers that a certificate names.

mod callers;
mod clients;
mod handshakes;
mod plaintext;
mod reload;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bates_testkit::certificates;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::documents::Home;
use super::running::Server;

const SERIES: &str = "  n: { pattern: \"N-{seq}\", key: \"n\", audit: true }
  counter: { pattern: \"{seq}\", promise: ordered, key: \"counter:{name}\" }\n";

/// A server with a certificate for localhost.
struct Site {
    server: Server,
    certificates: TempDir,
    // Invariant: the last field, so that the server ends before its folder is removed.
    _home: Home,
}

impl Site {
    fn start(environment: &[(&str, &str)]) -> Self {
        let (certificates, home) = (certificates(), Home::folder());
        let path = |name: &str| certificates.path().join(name).display().to_string();
        let (certificate, key, authority) = (path("server.pem"), path("server.key"), path("ca.pem"));
        let mut variables = vec![("BATES_TLS_CERTIFICATE", &*certificate), ("BATES_TLS_KEY", &*key)];
        if environment.iter().any(|(name, _)| name.ends_with("__CERTIFICATE")) {
            variables.push(("BATES_TLS_CLIENT_CA", &*authority));
        }
        variables.extend(environment);
        Self { server: home.start_with(SERIES, &variables), certificates, _home: home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.certificates.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A client that trusts the authority of the server.
    fn connect(&self, port: u16, identity: Option<(&Path, &str)>) -> Client {
        Client::connect(port, &self.path("ca.pem"), identity)
    }
}

/// An encrypted connection, as a program opens it.
struct Client(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Client {
    /// With the certificate of this name in this folder, if one is named.
    fn connect(port: u16, authority: &Path, identity: Option<(&Path, &str)>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            Some((folder, name)) => {
                let chain = vec![CertificateDer::from_pem_file(folder.join(format!("{name}.pem"))).unwrap()];
                let key = PrivateKeyDer::from_pem_file(folder.join(format!("{name}.key"))).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        Self(BufReader::new(StreamOwned::new(connection, stream)))
    }

    /// Sends a line, and returns the first line of the answer; `None` if the server refuses the connection.
    fn ask(&mut self, line: &str) -> Option<String> {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        self.0.read_line(&mut answer).ok().filter(|read| *read > 0)?;
        Some(answer.trim_end().to_owned())
    }

    /// Sends a request without a body, and returns the status and all of the answer; `None` as for `ask`.
    fn request(&mut self, request: &str, headers: &str) -> Option<(u16, String)> {
        let text = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        self.0.get_mut().write_all(text.as_bytes()).ok()?;
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).ok()?;
        Some((answer.split(' ').nth(1)?.parse().ok()?, answer))
    }

    /// The certificate that the server sent.
    fn server_certificate(&mut self) -> CertificateDer<'static> {
        while self.0.get_ref().conn.is_handshaking() {
            let StreamOwned { conn, sock } = self.0.get_mut();
            conn.complete_io(sock).unwrap();
        }
        self.0.get_ref().conn.peer_certificates().unwrap()[0].clone().into_owned()
    }
}

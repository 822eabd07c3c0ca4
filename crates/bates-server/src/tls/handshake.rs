//! The handshake of a connection, in its own task: a client that stalls holds up no other.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Stream;
use super::names::certificate_names;
use crate::Peer;

/// The connection and its client; `None` if the handshake fails, takes too long, or the server stops.
pub(crate) async fn accept(
    stream: TcpStream,
    config: Option<Arc<ServerConfig>>,
    handshake_timeout: Duration,
    stop: &watch::Receiver<bool>,
) -> Option<(Stream, Peer)> {
    let _ = stream.set_nodelay(true);
    let address = stream.peer_addr().ok();
    let Some(config) = config else {
        return Some((Stream::Plain(stream), Peer::new(address, Vec::new())));
    };
    let handshake = timeout(handshake_timeout, TlsAcceptor::from(config).accept(stream));
    let mut stop = stop.clone();
    let stream = tokio::select! {
        outcome = handshake => outcome.ok()?.ok()?,
        _ = stop.changed() => return None,
    };
    // Present only if the verifier accepted it.
    let chain = stream.get_ref().1.peer_certificates();
    let names = chain.and_then(<[_]>::first).map(|certificate| certificate_names(certificate));
    let peer = Peer::new(address, names.unwrap_or_default());
    Some((Stream::Tls(Box::new(stream)), peer))
}

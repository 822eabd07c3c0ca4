//! The Redis port, and the state that its connections share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, Store};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::clients::Clients;
use super::connection;
use crate::{Access, Tls, port};

#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Arc<Access>,
    /// From the first byte of a command to its last. Between commands, an authenticated client may be silent for ever.
    pub command_timeout: Duration,
    /// The server closes the connection of a client that does not read its answers within this time.
    pub write_timeout: Duration,
    /// `None`: plain text.
    pub tls: Option<Arc<Tls>>,
    /// The server closes a connection whose TLS handshake takes longer.
    pub handshake_timeout: Duration,
}

impl Settings {
    /// With timeouts long enough for slow networks.
    pub fn new(access: Arc<Access>) -> Self {
        let minute = Duration::from_mins(1);
        let (command_timeout, write_timeout) = (minute, minute / 2);
        Self { access, command_timeout, write_timeout, tls: None, handshake_timeout: minute }
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) clients: Arc<Clients>,
    pub(super) started: Instant,
}

/// Serves connections until `stop` completes, then lets each finish the commands that have arrived.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let shared = Arc::new(Shared { settings, clients: Arc::default(), started: Instant::now() });
    let serve = |stream, stop_signal| {
        let (machine, shared) = (machine.clone(), shared.clone());
        async move {
            // A client that disconnects is the usual end of a connection.
            let _ = connection::serve(stream, machine, shared, stop_signal).await;
        }
    };
    let is_plain = shared.settings.tls.is_none();
    let refuse = async |stream| {
        // A client that expects TLS cannot read a refusal in plain text.
        if is_plain {
            connection::refuse(stream).await;
        }
    };
    port::serve(listener, stop, serve, refuse).await;
}

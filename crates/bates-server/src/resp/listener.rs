//! The Redis port, and the state that its connections share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, Store};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::clients::Clients;
use super::connection;
use crate::{Access, port};

#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Arc<Access>,
    /// From the first byte of a command to its last. Between commands, an authenticated client may be silent for ever.
    pub command_timeout: Duration,
    /// The server closes the connection of a client that does not read its answers within this time.
    pub write_timeout: Duration,
}

impl Settings {
    /// With timeouts long enough for slow networks.
    pub fn new(access: Arc<Access>) -> Self {
        Self { access, command_timeout: Duration::from_mins(1), write_timeout: Duration::from_secs(30) }
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
    port::serve(listener, stop, serve, connection::refuse).await;
}

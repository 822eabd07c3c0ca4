//! The Redis port, and what its connections share: the settings, and who is connected.

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
    /// For a command to arrive whole; between commands an admitted client may be silent for any time.
    pub command_timeout: Duration,
    /// A client that does not take its answers in this time is disconnected.
    pub write_timeout: Duration,
}

impl Settings {
    /// With timeouts that slow networks do not reach.
    pub fn new(access: Arc<Access>) -> Self {
        Self { access, command_timeout: Duration::from_mins(1), write_timeout: Duration::from_secs(30) }
    }
}

#[derive(Debug)]
pub(super) struct Front {
    pub(super) settings: Settings,
    pub(super) clients: Arc<Clients>,
    pub(super) opened: Instant,
}

/// Serves connections until `stop` is done; then lets each finish the commands that it has received.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let front = Arc::new(Front { settings, clients: Arc::default(), opened: Instant::now() });
    let serving = |stream, stopped| {
        let (machine, front) = (machine.clone(), front.clone());
        async move {
            // A client that goes away is the usual end of a connection.
            let _ = connection::serve(stream, machine, front, stopped).await;
        }
    };
    port::serve(listener, stop, serving, connection::refuse).await;
}

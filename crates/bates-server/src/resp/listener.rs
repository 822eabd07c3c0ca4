//! The Redis port, and what all its connections share: who is let in, how long a client is waited for, and who is
//! connected.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, Store};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::clients::Clients;
use super::connection;
use crate::{Access, port};

/// Listener settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who is let in.
    pub access: Arc<Access>,
    /// A command that does not arrive whole in this time is dropped with its connection; between commands a
    /// client may be silent as long as it likes, once it is admitted.
    pub command_timeout: Duration,
    /// A client that does not take its answers in this time is gone.
    pub write_timeout: Duration,
}

impl Settings {
    /// With a patience that slow networks do not exhaust.
    pub fn new(access: Arc<Access>) -> Self {
        let (command_timeout, write_timeout) = (Duration::from_mins(1), Duration::from_secs(30));
        Self { access, command_timeout, write_timeout }
    }
}

/// The settings of a port that is open, and its clients.
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

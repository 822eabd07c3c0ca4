//! The Redis port, and the state that its connections share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{ErrorCode, Machine, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::clients::Clients;
use super::{Protocol, Reply, connection};
use crate::defense::{ProbeSlot, Refusal, Slot};
use crate::port::{self, FrontEnd};
use crate::{Access, Defense, Tls};

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
    /// Both ports should have the same.
    pub defense: Arc<Defense>,
}

impl Settings {
    /// With timeouts long enough for slow networks.
    pub fn new(access: Arc<Access>) -> Self {
        let minute = Duration::from_mins(1);
        let (command_timeout, write_timeout, defense) = (minute, minute / 2, Arc::default());
        Self { access, command_timeout, write_timeout, tls: None, handshake_timeout: minute, defense }
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
    port::serve(listener, stop, Resp { machine, shared }).await;
}

struct Resp<S> {
    machine: Arc<Machine<S>>,
    shared: Arc<Shared>,
}

impl<S: Store> FrontEnd for Resp<S> {
    fn defense(&self) -> &Arc<Defense> {
        &self.shared.settings.defense
    }

    fn is_tls(&self) -> bool {
        self.shared.settings.tls.is_some()
    }

    fn serve(
        &self,
        stream: TcpStream,
        slot: Slot,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (machine, shared) = (self.machine.clone(), self.shared.clone());
        async move {
            // A client that disconnects is the usual end of a connection.
            let _ = connection::serve(stream, slot, machine, shared, stop).await;
        }
    }

    fn refuse(
        &self,
        stream: TcpStream,
        refusal: Refusal,
        _: watch::Receiver<bool>,
    ) -> Option<(ProbeSlot, impl Future<Output = ()> + Send + 'static)> {
        // A client that expects TLS cannot read a refusal in plain text.
        if !self.is_tls() {
            send_refusal(&stream, |reply| match refusal {
                // The words of Redis, by which clients know it.
                Refusal::Slots => reply.error("ERR", "max number of clients reached"),
                Refusal::SlotsOfAddress => {
                    let code = ErrorCode::TOO_MANY_CONNECTIONS;
                    reply.code(code, "this address has as many connections as it may");
                }
                Refusal::Memory => reply.code(ErrorCode::OVERLOADED, "the memory for requests is used up"),
            });
        }
        None::<(ProbeSlot, std::future::Ready<()>)>
    }
}

/// Answers as far as the socket has room, without waiting for the client.
pub(super) fn send_refusal(stream: &TcpStream, write: impl FnOnce(&mut Reply<'_>)) {
    let mut answer = Vec::new();
    write(&mut Reply::new(&mut answer, Protocol::Resp2));
    // A new socket has room for a line.
    let _ = stream.try_write(&answer);
}

//! A TCP port of either front end: accepts connections that the defense admits, and drains them when the server stops.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Defense;
use crate::defense::{ProbeSlot, Refusal, Slot};

/// What a connection counts from its start: about as much as its buffers and its task take.
const CONNECTION_BYTES: usize = 16 * 1024;
/// Of encrypted connections: the buffers of TLS are several records long.
const TLS_CONNECTION_BYTES: usize = 48 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_secs(1);

/// What a port does with its connections.
pub(crate) trait FrontEnd {
    fn defense(&self) -> &Arc<Defense>;

    fn is_tls(&self) -> bool;

    /// Serves a connection until it ends, or soon after `stop` changes.
    fn serve(
        &self,
        stream: TcpStream,
        slot: Slot,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// Refuses a connection without waiting for the client, or serves its probes only.
    fn refuse(
        &self,
        stream: TcpStream,
        refusal: Refusal,
        stop: watch::Receiver<bool>,
    ) -> Option<(ProbeSlot, impl Future<Output = ()> + Send + 'static)>;
}

/// Serves connections until `stop` completes, then signals every connection and waits for it to finish its work.
pub(crate) async fn serve(listener: TcpListener, stop: impl Future<Output = ()>, front_end: impl FrontEnd) {
    let (stop_sender, stop_signal) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut ticks = tokio::time::interval(TICK);
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Usually the process has run out of file descriptors: wait for a connection to end.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                admit(stream, &front_end, &mut connections, &stop_signal);
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = ticks.tick() => front_end.defense().tick(),
        }
    }
    drop(listener);
    drain(connections, &stop_sender).await;
}

fn admit(
    stream: TcpStream,
    front_end: &impl FrontEnd,
    connections: &mut JoinSet<()>,
    stop: &watch::Receiver<bool>,
) {
    let address = stream.peer_addr().ok().map(|address| address.ip());
    let bytes = if front_end.is_tls() { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
    match front_end.defense().admit(address, bytes) {
        Ok(slot) => {
            let set_task = slot.closer();
            set_task(connections.spawn(front_end.serve(stream, slot, stop.clone())));
        }
        Err(refusal) => {
            if let Some((slot, probe)) = front_end.refuse(stream, refusal, stop.clone()) {
                let set_task = slot.closer();
                set_task(connections.spawn(async move {
                    let _slot = slot;
                    probe.await;
                }));
            }
        }
    }
}

/// Connections that do not finish within the timeout are aborted.
async fn drain(mut connections: JoinSet<()>, stop_sender: &watch::Sender<bool>) {
    // An error means that no connection is left.
    let _ = stop_sender.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
    connections.shutdown().await;
}

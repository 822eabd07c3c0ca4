//! The Redis port: accepts connections up to a bound, and lets them end when the server stops.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Machine, Store};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::front::Front;
use super::{Settings, connection};

/// Connections at a time. Each holds some tens of kilobytes, so this bounds memory to some hundred megabytes.
const CONNECTIONS_MAX: usize = 10_000;

/// How long a stop waits for connections to finish what they do.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a failing `accept` is left alone.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` is done; then lets each finish the commands that it has received.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let front = Arc::new(Front::new(settings));
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // No descriptor is left, most likely: some connection has to end before the next can begin.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let Ok(permit) = room.clone().try_acquire_owned() else {
                    connection::refuse(stream).await;
                    continue;
                };
                let (machine, front, stopped) = (machine.clone(), front.clone(), stopped.clone());
                connections.spawn(async move {
                    let _permit = permit;
                    // A client that goes away is the usual end of a connection.
                    let _ = connection::serve(stream, machine, front, stopped).await;
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    // Whoever still listens is told; nobody listening is as good.
    let _ = stopping.send(true);
    drain(connections).await;
    Ok(())
}

/// Whoever does not take its answers in time is left without them.
async fn drain(mut connections: JoinSet<()>) {
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
    connections.shutdown().await;
}

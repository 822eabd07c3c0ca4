//! A port: accepts connections up to a bound, and lets them end when the server stops. What is spoken on a
//! connection is the front end's affair.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Connections at a time. Each holds some tens of kilobytes, so this bounds memory to some hundred megabytes.
const CONNECTIONS_MAX: usize = 10_000;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` is done; then tells each through its channel, and lets it finish what it has begun.
/// A connection beyond the bound goes to `refuse`.
pub(crate) async fn serve<C, R>(
    listener: TcpListener,
    stop: impl Future<Output = ()>,
    connection: impl Fn(TcpStream, watch::Receiver<bool>) -> C,
    refuse: impl Fn(TcpStream) -> R,
) where
    C: Future<Output = ()> + Send + 'static,
    R: Future<Output = ()>,
{
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
                match room.clone().try_acquire_owned() {
                    Err(_) => refuse(stream).await,
                    Ok(permit) => {
                        let serving = connection(stream, stopped.clone());
                        connections.spawn(async move {
                            let _permit = permit;
                            serving.await;
                        });
                    }
                }
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    drain(connections, &stopping).await;
}

/// A client that does not take its answers in time does not get them.
async fn drain(mut connections: JoinSet<()>, stopping: &watch::Sender<bool>) {
    // An error means that no connection is left.
    let _ = stopping.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
    connections.shutdown().await;
}

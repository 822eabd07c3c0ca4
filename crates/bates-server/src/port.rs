//! A TCP port of either front end: accepts connections up to a limit, and drains them when the server stops.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Open connections. Each holds tens of kilobytes, so together they hold at most some hundred megabytes.
const CONNECTIONS_MAX: usize = 10_000;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` completes, then signals every connection and waits for it to finish its work.
/// A connection beyond the limit is passed to `refuse`.
pub(crate) async fn serve<C, R>(
    listener: TcpListener,
    stop: impl Future<Output = ()>,
    connection: impl Fn(TcpStream, watch::Receiver<bool>) -> C,
    refuse: impl Fn(TcpStream) -> R,
) where
    C: Future<Output = ()> + Send + 'static,
    R: Future<Output = ()>,
{
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (stop_sender, stop_signal) = watch::channel(false);
    let mut connections = JoinSet::new();
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
                match permits.clone().try_acquire_owned() {
                    Err(_) => refuse(stream).await,
                    Ok(permit) => {
                        let serving = connection(stream, stop_signal.clone());
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
    drain(connections, &stop_sender).await;
}

/// Connections that do not finish within the timeout are aborted.
async fn drain(mut connections: JoinSet<()>, stop_sender: &watch::Sender<bool>) {
    // An error means that no connection is left.
    let _ = stop_sender.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
    connections.shutdown().await;
}

//! The Redis port.

use std::future::Future;
use std::sync::Arc;

use bates_core::{Machine, Store};
use tokio::net::TcpListener;

use super::front::Front;
use super::{Settings, connection};
use crate::port;

/// Serves connections until `stop` is done; then lets each finish the commands that it has received.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let front = Arc::new(Front::new(settings));
    let serving = |stream, stopped| {
        let (machine, front) = (machine.clone(), front.clone());
        async move {
            // A client that goes away is the usual end of a connection.
            let _ = connection::serve(stream, machine, front, stopped).await;
        }
    };
    port::serve(listener, stop, serving, connection::refuse).await;
}

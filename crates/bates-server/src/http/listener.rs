//! The HTTP port: accepts connections up to a bound, and lets them end when the server stops.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use axum::{Router, body::Body, http::Request};
use bates_core::{Machine, Store};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Settings, routes};

/// Connections at a time. Each holds some tens of kilobytes.
const CONNECTIONS_MAX: usize = 10_000;

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a stop waits for requests to be answered.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a failing `accept` is left alone.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` is done; then lets each finish the request that it has begun.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let router = TowerToHyperService::new(routes::router(machine, &settings));
    let settings = Arc::new(settings);
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
                // Whoever comes when there is no room is left: an answer would cost what is missing.
                let Ok(permit) = room.clone().try_acquire_owned() else { continue };
                let (door, stopped) = (Door { router: router.clone(), settings: settings.clone() }, stopped.clone());
                connections.spawn(async move {
                    let _permit = permit;
                    connection(stream, door, stopped).await;
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    // Whoever still listens is told; nobody listening is as good.
    let _ = stopping.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
    connections.shutdown().await;
    Ok(())
}

/// Serves one connection. A client that goes away is its usual end, and no error.
async fn connection(stream: TcpStream, door: Door, mut stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(door.settings.head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), door);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        // It changes once; or whoever would change it is gone, which is as good.
        _ = stopped.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Stands before the routes, and turns away who may not come in.
#[derive(Clone)]
struct Door {
    router: TowerToHyperService<Router>,
    settings: Arc<Settings>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl Service<Request<Incoming>> for Door {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        match self.settings.refusal(&request) {
            Some(problem) => Box::pin(async { Ok(problem.into_response()) }),
            None => Box::pin(self.router.call(request)),
        }
    }
}

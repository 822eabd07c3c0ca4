//! The HTTP port: connections, and who of them is let in.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::http::Request;
use axum::response::IntoResponse;
use bates_core::{Machine, Store};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::patient::Patient;
use super::{Settings, routes};
use crate::{Caller, port};

const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves connections until `stop` is done; then lets each finish the request that it has begun.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let router = TowerToHyperService::new(routes::router(machine, &settings));
    let settings = Arc::new(settings);
    // No answer: it would cost the room that is missing.
    let refuse = async |stream| drop::<TcpStream>(stream);
    let serving = |stream, stopped| connection(router.clone(), settings.clone(), stream, stopped);
    port::serve(listener, stop, serving, refuse).await;
}

/// A client that goes away is the usual end of a connection, and no error.
async fn connection(
    router: TowerToHyperService<Router>,
    settings: Arc<Settings>,
    stream: TcpStream,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(settings.head_timeout).max_buf_size(HEAD_BYTES_MAX);
    // By the address of the socket, never by a header.
    let stranger = Caller::at(stream.peer_addr().ok());
    let stream = TokioIo::new(Patient::new(stream, settings.write_timeout));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let answer = settings.admit(&request, &stranger).map(|caller| {
            request.extensions_mut().insert(caller);
            router.call(request)
        });
        async {
            match answer {
                Ok(answer) => answer.await,
                Err(problem) => Ok(problem.into_response()),
            }
        }
    });
    let mut connection = pin!(builder.serve_connection(stream, service));
    tokio::select! {
        _ = connection.as_mut() => return,
        // It changes once, or its sender is dropped: both mean shutdown.
        _ = stopped.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

//! The HTTP port: serves connections, and passes admitted requests to the router.

use std::convert::Infallible;
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

use super::security::AnswerKind;
use super::write_timeout::WriteTimeout;
use super::{Settings, routes};
use crate::{port, tls};

const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves connections until `stop` completes, then lets each finish its current request.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let router = TowerToHyperService::new(routes::router(machine, &settings));
    let settings = Arc::new(settings);
    // Closed without an answer, which would need memory when the connection limit is already reached.
    let refuse = async |stream| drop::<TcpStream>(stream);
    let serve = |stream, stop_signal| serve_connection(router.clone(), settings.clone(), stream, stop_signal);
    port::serve(listener, stop, serve, refuse).await;
}

/// Ignores connection errors: a client that disconnects is the usual end of a connection.
async fn serve_connection(
    router: TowerToHyperService<Router>,
    settings: Arc<Settings>,
    stream: TcpStream,
    mut stop_signal: watch::Receiver<bool>,
) {
    let config = settings.tls.as_ref().map(|tls| tls.http());
    // The address of the socket: a header could be forged.
    let Some((stream, peer)) = tls::accept(stream, config, settings.head_timeout, &stop_signal).await else {
        return;
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(settings.head_timeout).max_buf_size(HEAD_BYTES_MAX);
    let stream = TokioIo::new(WriteTimeout::new(stream, settings.write_timeout));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let kind = AnswerKind::of_path(request.uri().path());
        let answer = settings.admit(&request, &peer).map(|caller| {
            request.extensions_mut().insert(caller);
            router.call(request)
        });
        async move {
            let mut response = match answer {
                Ok(answer) => answer.await?,
                Err(problem) => problem.into_response(),
            };
            kind.add_headers(response.headers_mut());
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder.serve_connection(stream, service));
    tokio::select! {
        _ = connection.as_mut() => return,
        // The value changes once, or its sender is dropped: both mean shutdown.
        _ = stop_signal.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

//! The HTTP port: connections, and who of them is let in.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::{Router, body::Body, http::Request};
use bates_core::{Machine, Store};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::patient::Patient;
use super::{Settings, routes};
use crate::{Caller, port};

/// The longest head of a request.
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
    let door = |stream: &TcpStream| Door {
        router: router.clone(),
        settings: settings.clone(),
        stranger: Caller::at(stream.peer_addr().ok()),
    };
    // Whoever comes when there is no room is left: an answer would cost what is missing.
    let refuse = async |stream| drop::<TcpStream>(stream);
    port::serve(listener, stop, |stream, stopped| connection(door(&stream), stream, stopped), refuse).await;
}

/// Serves one connection. A client that goes away is its usual end, and no error.
async fn connection(door: Door, stream: TcpStream, mut stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(door.settings.head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Patient::new(stream, door.settings.write_timeout)), door);
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
    /// Whoever is at the other end, as the socket says and no header.
    stranger: Caller,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl Service<Request<Incoming>> for Door {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, mut request: Request<Incoming>) -> Answer {
        match self.settings.admit(&request, &self.stranger) {
            Err(problem) => Box::pin(async { Ok(problem.into_response()) }),
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                Box::pin(self.router.call(request))
            }
        }
    }
}

//! The HTTP port: serves connections, and passes admitted requests to the router.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use bates_core::{ErrorCode, Machine, Store};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::admission::is_probe;
use super::meter::{self, Meter, MeteredStream};
use super::problem::Problem;
use super::security::AnswerKind;
use super::write_timeout::WriteTimeout;
use super::{Settings, permit, routes};
use crate::defense::{ProbeSlot, Refusal, Slot};
use crate::port::{self, FrontEnd};
use crate::{Caller, Defense, Peer, tls};

/// Longer heads are refused. The buffer of a connection is as long, and anybody can fill it.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The least that hyper allows.
const PROBE_BYTES_MAX: usize = 8 * 1024;
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves connections until `stop` completes, then lets each finish its current request.
pub async fn serve<S: Store>(
    listener: TcpListener,
    machine: Arc<Machine<S>>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) {
    let router = TowerToHyperService::new(routes::router(machine, &settings));
    port::serve(listener, stop, Http { router, settings: Arc::new(settings) }).await;
}

#[derive(Clone)]
struct Http {
    router: TowerToHyperService<Router>,
    settings: Arc<Settings>,
}

impl FrontEnd for Http {
    fn defense(&self) -> &Arc<Defense> {
        &self.settings.defense
    }

    fn is_tls(&self) -> bool {
        self.settings.tls.is_some()
    }

    fn serve(
        &self,
        stream: TcpStream,
        slot: Slot,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.clone().serve_connection(stream, Some(slot), stop)
    }

    /// Monitors must see that the server runs, however many connections there are.
    fn refuse(
        &self,
        stream: TcpStream,
        _: Refusal,
        stop: watch::Receiver<bool>,
    ) -> Option<(ProbeSlot, impl Future<Output = ()> + Send + 'static)> {
        Some((ProbeSlot::open(self.defense()), self.clone().serve_connection(stream, None, stop)))
    }
}

impl Http {
    /// Ignores connection errors: a client that disconnects is the usual end of a connection. Without a slot, answers only
    /// probes.
    async fn serve_connection(
        self,
        stream: TcpStream,
        slot: Option<Slot>,
        mut stop_signal: watch::Receiver<bool>,
    ) {
        let settings = &self.settings;
        let (head_bytes_max, head_timeout) = match slot {
            Some(_) => (HEAD_BYTES_MAX, settings.head_timeout),
            None => (PROBE_BYTES_MAX, settings.head_timeout.min(PROBE_TIMEOUT)),
        };
        let config = settings.tls.as_ref().map(|tls| tls.http());
        // The address of the socket: a header could be forged.
        let Some((stream, peer)) = tls::accept(stream, config, head_timeout, &stop_signal).await else {
            return;
        };
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(head_bytes_max);
        let meter = Arc::new(Meter::new(slot));
        let stream = MeteredStream::new(WriteTimeout::new(stream, settings.write_timeout), meter.clone());
        let service = service_fn(move |request| {
            let answer = self.clone().answer(request, &peer, meter.clone());
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = connection.as_mut() => return,
            // The value changes once, or its sender is dropped: both mean shutdown.
            _ = stop_signal.changed() => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }

    fn answer(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
        meter: Arc<Meter>,
    ) -> impl Future<Output = Response> + use<> {
        meter.begin_request();
        let kind = AnswerKind::of_path(request.uri().path());
        let admitted = self.admit(&request, peer, &meter).map(|caller| {
            let mut request = request.map(|body| meter::meter_request(body, &meter, caller.clone()));
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(meter.clone());
            self.router.call(request)
        });
        async move {
            let mut response = match admitted {
                Ok(answer) => answer.await.unwrap_or_else(|never| match never {}),
                Err(refusal) => *refusal,
            };
            if meter.is_out_of_memory() {
                response = overloaded();
            }
            if meter.has_caller_ended() {
                response = closing(permit::ended_secret());
            }
            kind.add_headers(response.headers_mut());
            meter.end_request();
            response.map(|body| meter::meter_answer(body, &meter))
        }
    }

    fn admit(
        &self,
        request: &Request<Incoming>,
        peer: &Peer,
        meter: &Meter,
    ) -> Result<Caller, Box<Response>> {
        match meter.slot() {
            Some(slot) => {
                self.settings.admit(request, peer, slot).map_err(|refusal| refusal.into_response().into())
            }
            None if is_probe(request.uri().path()) => Ok(peer.caller.clone()),
            None => Err(too_many_connections().into()),
        }
    }
}

/// Ends the connection, whose buffers would go on to take memory.
fn overloaded() -> Response {
    let detail = "the memory for requests is used up; this one was not read to its end";
    closing(Problem::new(ErrorCode::OVERLOADED, detail))
}

fn too_many_connections() -> Response {
    let detail =
        "the server, or this address, has as many connections as it may; this one serves only probes";
    closing(Problem::new(ErrorCode::TOO_MANY_CONNECTIONS, detail))
}

fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

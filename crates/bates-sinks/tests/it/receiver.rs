//! A receiver of webhooks: an HTTP server on loopback that answers as each document instructs it to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Barrier;

pub(crate) struct Receiver {
    pub(crate) port: u16,
    pub(crate) state: Arc<ReceiverState>,
}

pub(crate) struct ReceiverState {
    pub(crate) requests: Mutex<Vec<(HeaderMap, Bytes)>>,
    /// Requests to the target of redirects.
    pub(crate) redirects_followed: AtomicUsize,
    together: Barrier,
}

impl Receiver {
    /// Starts a receiver. Documents that say `together` wait until that many of them have arrived.
    pub(crate) async fn start(together: usize) -> Self {
        let state = Arc::new(ReceiverState {
            requests: Mutex::default(),
            redirects_followed: AtomicUsize::new(0),
            together: Barrier::new(together),
        });
        let router = Router::new()
            .route("/hook", post(receive))
            .route("/elsewhere", post(follow_redirect).get(follow_redirect))
            .with_state(Arc::clone(&state));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }
}

async fn follow_redirect(State(state): State<Arc<ReceiverState>>) {
    state.redirects_followed.fetch_add(1, Ordering::SeqCst);
}

async fn receive(State(state): State<Arc<ReceiverState>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let event: Value = serde_json::from_slice(&body).unwrap();
    state.requests.lock().push((headers, body));
    let instruction = &event["data"]["document"]["do"];
    match instruction.as_str() {
        Some("hang") => std::future::pending().await,
        Some("together") => {
            state.together.wait().await;
            Response::new(Body::empty())
        }
        Some("talk") => {
            let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 1024])));
            Response::new(Body::from_stream(endless))
        }
        _ => respond_with(instruction.as_u64()),
    }
}

fn respond_with(status: Option<u64>) -> Response<Body> {
    let status = status.map_or(204, |status| u16::try_from(status).unwrap());
    let mut answer = Response::builder().status(StatusCode::from_u16(status).unwrap());
    if (300..400).contains(&status) {
        answer = answer.header("location", "/elsewhere");
    }
    answer.body(if status == 204 { Body::empty() } else { Body::from("because\nof this") }).unwrap()
}

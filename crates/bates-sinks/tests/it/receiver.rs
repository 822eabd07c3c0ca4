//! A receiver of webhooks: a real HTTP server on loopback that does to each document what the document says.

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
    pub(crate) seen: Arc<Seen>,
}

pub(crate) struct Seen {
    pub(crate) requests: Mutex<Vec<(HeaderMap, Bytes)>>,
    pub(crate) elsewhere: AtomicUsize,
    together: Barrier,
}

impl Receiver {
    /// A receiver; documents that say `together` wait until there are as many of them.
    pub(crate) async fn start(together: usize) -> Self {
        let seen = Arc::new(Seen {
            requests: Mutex::default(),
            elsewhere: AtomicUsize::new(0),
            together: Barrier::new(together),
        });
        let router = Router::new()
            .route("/hook", post(receive))
            .route("/elsewhere", post(elsewhere).get(elsewhere))
            .with_state(Arc::clone(&seen));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }
}

async fn elsewhere(State(seen): State<Arc<Seen>>) {
    seen.elsewhere.fetch_add(1, Ordering::SeqCst);
}

async fn receive(State(seen): State<Arc<Seen>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let event: Value = serde_json::from_slice(&body).unwrap();
    seen.requests.lock().push((headers, body));
    let wish = &event["data"]["document"]["do"];
    match wish.as_str() {
        Some("hang") => std::future::pending().await,
        Some("together") => {
            seen.together.wait().await;
            Response::new(Body::empty())
        }
        Some("talk") => {
            let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 1024])));
            Response::new(Body::from_stream(endless))
        }
        _ => told(wish.as_u64()),
    }
}

fn told(status: Option<u64>) -> Response<Body> {
    let status = status.map_or(204, |status| u16::try_from(status).unwrap());
    let mut answer = Response::builder().status(StatusCode::from_u16(status).unwrap());
    if (300..400).contains(&status) {
        answer = answer.header("location", "/elsewhere");
    }
    answer.body(if status == 204 { Body::empty() } else { Body::from("because\nof this") }).unwrap()
}

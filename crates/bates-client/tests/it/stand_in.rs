//! What a pool asks of Bates, in memory: epochs, and numbers that are given once, to the list (`R-…`) or to whoever asks
//! directly (`B-…`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

pub(crate) const KEY: &str = "id-pool:PROJ:9012";
/// The store whose numbers are in the list.
pub(crate) const STORE: &str = "0b9b0b1e-6d1e-4d7e-9d1c-0f3f3e6f2a01";
pub(crate) const MARKER: &str = "{id-pool:PROJ:9012}:bates";

/// A Bates that can be taken away and brought back.
pub(crate) struct StandIn {
    runtime: Option<Runtime>,
    port: u16,
    pub(crate) seen: Arc<Seen>,
}

pub(crate) struct Seen {
    redis: redis::Client,
    /// How many numbers a list is begun with.
    fill: u64,
    /// The last number there is.
    end: u64,
    /// Whoever holds it holds up whoever attaches.
    pub(crate) kept: Mutex<Kept>,
    /// Whoever holds it holds up whoever asks for numbers.
    pub(crate) giving: Mutex<()>,
    next: AtomicU64,
    pub(crate) attached: AtomicU64,
    pub(crate) direct: AtomicU64,
}

pub(crate) struct Kept {
    server: Value,
    pub(crate) epoch: u64,
}

impl StandIn {
    pub(crate) fn start(redis: &str, fill: u64, end: u64) -> Self {
        let seen = Arc::new(Seen {
            redis: redis::Client::open(redis).unwrap(),
            fill,
            end,
            kept: Mutex::new(Kept { server: Value::Null, epoch: 0 }),
            giving: Mutex::new(()),
            next: AtomicU64::new(1),
            attached: AtomicU64::new(0),
            direct: AtomicU64::new(0),
        });
        let mut this = Self { runtime: None, port: 0, seen };
        this.up();
        this
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends it with all its connections.
    pub(crate) fn down(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Starts it again, with all that it knew.
    pub(crate) fn up(&mut self) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.port = listener.local_addr().unwrap().port();
        let routes = Router::new()
            .route("/v1/series/document/pool/attach", post(attach))
            .route("/v1/series/document/pool/next", post(next))
            .with_state(self.seen.clone());
        let runtime = Runtime::new().unwrap();
        runtime.spawn(async move {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), routes).await.unwrap();
        });
        self.runtime = Some(runtime);
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Seen {
    fn taken(&self, count: u64) -> Vec<u64> {
        let from = self.next.fetch_add(count, Ordering::SeqCst);
        (from..from + count).filter(|number| *number <= self.end).collect()
    }
}

async fn attach(State(seen): State<Arc<Seen>>, Json(ask): Json<Value>) -> Json<Value> {
    seen.attached.fetch_add(1, Ordering::SeqCst);
    assert_eq!(ask["scope"], json!({ "project": "PROJ", "type": "9012" }));
    let mut kept = seen.kept.lock().await;
    // A busy machine takes longer than the half second that is the default.
    let patient = redis::AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let mut redis = seen.redis.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
    let marker: Option<u64> =
        redis::cmd("HGET").arg(MARKER).arg("epoch").query_async(&mut redis).await.unwrap();
    let server = json!([ask["run_id"], ask["replication_id"]]);
    if kept.server != server || marker != Some(kept.epoch) {
        *kept = Kept { server, epoch: kept.epoch + 1 };
        let mut renew = redis::pipe();
        renew.atomic().cmd("DEL").arg(KEY).arg(MARKER);
        renew.cmd("HSET").arg(MARKER).arg("epoch").arg(kept.epoch).arg("store").arg(STORE);
        for number in seen.taken(seen.fill) {
            renew.cmd("RPUSH").arg(KEY).arg(format!("R-{number}"));
        }
        renew.exec_async(&mut redis).await.unwrap();
    }
    Json(json!({ "key": KEY, "epoch": kept.epoch, "store": STORE }))
}

async fn next(State(seen): State<Arc<Seen>>, Json(ask): Json<Value>) -> (StatusCode, Json<Value>) {
    drop(seen.giving.lock().await);
    let numbers = seen.taken(ask["count"].as_u64().unwrap());
    seen.direct.fetch_add(numbers.len() as u64, Ordering::SeqCst);
    if numbers.is_empty() {
        let problem = json!({ "code": "exhausted", "detail": "the scope is exhausted" });
        return (StatusCode::CONFLICT, Json(problem));
    }
    let values: Vec<String> = numbers.iter().map(|number| format!("B-{number}")).collect();
    (StatusCode::OK, Json(json!({ "values": values })))
}

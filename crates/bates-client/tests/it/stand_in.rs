//! A Bates in memory, with only what a pool needs: epochs, and numbers that it gives once, to the list
//! (`R-…`) or to a client that asks directly (`B-…`).

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

/// A stand-in for Bates that can be stopped and started again.
pub(crate) struct StandIn {
    runtime: Option<Runtime>,
    port: u16,
    pub(crate) state: Arc<SharedState>,
}

pub(crate) struct SharedState {
    redis: redis::Client,
    /// How many numbers a new list begins with.
    fill: u64,
    /// The last number.
    end: u64,
    /// A test that holds the lock delays `attach`.
    pub(crate) list: Mutex<List>,
    /// A test that holds the lock delays `next`.
    pub(crate) next_gate: Mutex<()>,
    next: AtomicU64,
    pub(crate) attach_calls: AtomicU64,
    pub(crate) direct_numbers: AtomicU64,
}

pub(crate) struct List {
    server: Value,
    pub(crate) epoch: u64,
}

impl StandIn {
    pub(crate) fn start(redis: &str, fill: u64, end: u64) -> Self {
        let state = Arc::new(SharedState {
            redis: redis::Client::open(redis).unwrap(),
            fill,
            end,
            list: Mutex::new(List { server: Value::Null, epoch: 0 }),
            next_gate: Mutex::new(()),
            next: AtomicU64::new(1),
            attach_calls: AtomicU64::new(0),
            direct_numbers: AtomicU64::new(0),
        });
        let mut stand_in = Self { runtime: None, port: 0, state };
        stand_in.up();
        stand_in
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Stops it and closes all its connections.
    pub(crate) fn down(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Starts it again, with its former state.
    pub(crate) fn up(&mut self) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.port = listener.local_addr().unwrap().port();
        let routes = Router::new()
            .route("/v1/series/document/pool/attach", post(attach))
            .route("/v1/series/document/pool/next", post(next))
            .with_state(self.state.clone());
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

impl SharedState {
    fn take(&self, count: u64) -> Vec<u64> {
        let from = self.next.fetch_add(count, Ordering::SeqCst);
        (from..from + count).filter(|number| *number <= self.end).collect()
    }
}

async fn attach(State(state): State<Arc<SharedState>>, Json(request): Json<Value>) -> Json<Value> {
    state.attach_calls.fetch_add(1, Ordering::SeqCst);
    assert_eq!(request["scope"], json!({ "project": "PROJ", "type": "9012" }));
    let mut list = state.list.lock().await;
    // On a busy machine the default timeout of half a second is too short.
    let no_timeout =
        redis::AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let mut redis = state.redis.get_multiplexed_async_connection_with_config(&no_timeout).await.unwrap();
    let marker: Option<u64> =
        redis::cmd("HGET").arg(MARKER).arg("epoch").query_async(&mut redis).await.unwrap();
    let server = json!([request["run_id"], request["replication_id"]]);
    if list.server != server || marker != Some(list.epoch) {
        *list = List { server, epoch: list.epoch + 1 };
        let mut renew = redis::pipe();
        renew.atomic().cmd("DEL").arg(KEY).arg(MARKER);
        renew.cmd("HSET").arg(MARKER).arg("epoch").arg(list.epoch).arg("store").arg(STORE);
        for number in state.take(state.fill) {
            renew.cmd("RPUSH").arg(KEY).arg(format!("R-{number}"));
        }
        renew.exec_async(&mut redis).await.unwrap();
    }
    Json(json!({ "key": KEY, "epoch": list.epoch, "store": STORE }))
}

async fn next(
    State(state): State<Arc<SharedState>>,
    Json(request): Json<Value>,
) -> (StatusCode, Json<Value>) {
    drop(state.next_gate.lock().await);
    let numbers = state.take(request["count"].as_u64().unwrap());
    state.direct_numbers.fetch_add(numbers.len() as u64, Ordering::SeqCst);
    if numbers.is_empty() {
        let problem = json!({ "code": "exhausted", "detail": "the scope is exhausted" });
        return (StatusCode::CONFLICT, Json(problem));
    }
    let values: Vec<String> = numbers.iter().map(|number| format!("B-{number}")).collect();
    (StatusCode::OK, Json(json!({ "values": values })))
}

//! Which path is answered by whom.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::routing::{get, post};
use bates_core::{Code, Entry, Machine, SeriesName, Store};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::health::Health;
use super::openg2p::{self, Ready};
use super::problem::Problem;
use super::{
    Settings, audit, documents, gaps, health, lease, metrics, next, openapi, pools, scopes, series, trace,
};

/// What every request needs.
pub(super) struct Context<S> {
    pub(super) machine: Arc<Machine<S>>,
    pub(super) body_timeout: Duration,
    pub(super) health: Arc<Health>,
    /// Which ID types can issue.
    pub(super) ready: Arc<Ready>,
    /// Turns of lines of streams: those of all streams together.
    pub(super) turns: Arc<Semaphore>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        let (machine, health, turns) = (self.machine.clone(), self.health.clone(), self.turns.clone());
        Self { machine, body_timeout: self.body_timeout, health, ready: self.ready.clone(), turns }
    }
}

impl<S: Store> Context<S> {
    /// The series of that name, or why there is none.
    pub(super) async fn series(&self, name: &str) -> Result<Arc<Entry>, Problem> {
        let found = self.machine.named_anywhere(name).await;
        found.ok_or_else(|| match self::name(name) {
            Ok(name) => Problem::new(Code::UNKNOWN_SERIES, format!("there is no series {:?}", name.as_str())),
            Err(problem) => problem,
        })
    }
}

pub(super) fn name(text: &str) -> Result<SeriesName, Problem> {
    text.parse().map_err(|error: bates_core::NameError| Problem::new(Code::BAD_NAME, error.to_string()))
}

/// The paths of numbers in advance.
fn of_leases<S: Store>() -> Router<Context<S>> {
    Router::new()
        .route("/v1/series/{series}/lease", post(lease::lease::<S>))
        .route("/v1/leases", get(lease::held::<S>))
        .route("/v1/leases/{lease}/return", post(lease::give_back::<S>))
}

/// The paths of documents and reservations.
fn of_documents<S: Store>() -> Router<Context<S>> {
    Router::new()
        .route("/v1/series/{series}/documents", post(documents::assign::<S>))
        .route("/v1/series/{series}/reservations", post(documents::reserve::<S>))
        .route("/v1/reservations/{token}/confirm", post(documents::confirm::<S>))
        .route("/v1/reservations/{token}/void", post(documents::void::<S>))
        .route("/v1/documents/{id}", get(documents::document::<S>))
        .route("/v1/outbox", get(documents::outbox::<S>))
        .route("/v1/outbox/counts", get(documents::counts::<S>))
        .route("/v1/outbox/retry", post(documents::retry_all::<S>))
        .route("/v1/outbox/abandon", post(documents::abandon_all::<S>))
        .route("/v1/outbox/{id}/retry", post(documents::retry::<S>))
        .route("/v1/outbox/{id}/abandon", post(documents::abandon::<S>))
}

/// The paths of shared pools.
fn of_pools<S: Store>() -> Router<Context<S>> {
    Router::new()
        .route("/v1/pools", get(pools::all::<S>))
        .route("/v1/series/{series}/pool", post(pools::ask_for::<S>))
        .route("/v1/series/{series}/pool/attach", post(pools::attach::<S>))
        .route("/v1/series/{series}/pool/next", post(pools::next::<S>))
}

pub(super) fn router<S: Store>(machine: Arc<Machine<S>>, settings: &Settings) -> Router {
    let one =
        get(series::one::<S>).put(series::put::<S>).patch(series::patch::<S>).delete(series::retire::<S>);
    Router::new()
        .route("/v1/series/{series}/next", post(next::next::<S>))
        .route("/v1/series", get(series::all::<S>))
        .route("/v1/series/{series}", one)
        .route("/v1/series/{series}/scopes", get(scopes::list::<S>))
        .route("/v1/series/{series}/peek", get(scopes::peek::<S>))
        .route("/v1/series/{series}/validate/{id}", get(trace::validate::<S>))
        .route("/v1/ids/{id}", get(trace::find::<S>))
        .merge(of_leases())
        .merge(of_documents())
        .merge(of_pools())
        .nest(openg2p::BASE, openg2p::routes())
        .route("/v1/gaps", get(gaps::gaps::<S>))
        .route("/api/v1/ids/gaps", get(gaps::gaps::<S>))
        .route("/v1/audit", get(audit::audit::<S>))
        .route("/v1/reconcile", post(gaps::reconcile::<S>))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready::<S>))
        .route("/metrics", get(metrics::metrics::<S>))
        .route("/openapi.json", get(openapi::json))
        .route("/", get(openapi::page))
        .route("/docs", get(openapi::page))
        .route("/docs/", get(openapi::index))
        .route("/docs/{*file}", get(openapi::file))
        .fallback(async || Problem::new(Code::NOT_FOUND, "nothing is at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::METHOD_NOT_ALLOWED, "the path does not know this method")
        })
        .with_state(Context {
            machine,
            body_timeout: settings.body_timeout,
            health: Arc::default(),
            ready: Arc::default(),
            turns: Arc::new(Semaphore::new(documents::LINES_OF_ALL)),
        })
}

/// The parts of a path; what is not UTF-8 is refused as every other bad name.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, C: Send + Sync> FromRequestParts<C> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &C) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, context).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(_) => Err(Problem::new(Code::BAD_NAME, "a part of the path is not UTF-8")),
        }
    }
}

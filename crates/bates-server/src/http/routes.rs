//! Which handler answers which path, and what handlers are given: the context, the series and the parts of the path.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::routing::get;
use bates_core::{Code, Entry, Machine, SeriesName, Store};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::health::Health;
use super::openg2p::{self, Ready};
use super::problem::Problem;
use super::{
    Settings, audit, documents, gaps, health, lease, metrics, next, openapi, pools, query, scopes, series,
    trace,
};

pub(super) type Context<S> = State<Arc<Shared<S>>>;

pub(super) struct Shared<S> {
    pub(super) machine: Arc<Machine<S>>,
    pub(super) body_timeout: Duration,
    pub(super) health: Health,
    pub(super) ready: Ready,
    /// Lines that are being numbered, of all streams together.
    pub(super) turns: Arc<Semaphore>,
    pub(super) description: Bytes,
}

impl<S: Store> Shared<S> {
    pub(super) async fn series(&self, name: &str) -> Result<Arc<Entry>, Problem> {
        let found = self.machine.named_anywhere(name).await;
        found.ok_or_else(|| match self::name(name) {
            Ok(name) => Problem::new(Code::UNKNOWN_SERIES, format!("there is no series {:?}", name.as_str())),
            Err(problem) => problem,
        })
    }

    /// As [`query::only_series`], and the series must exist.
    pub(super) async fn only_series(&self, uri: &Uri) -> Result<Option<SeriesName>, Problem> {
        let only = query::only_series(uri)?;
        if let Some(name) = &only {
            self.series(name.as_str()).await?;
        }
        Ok(only)
    }
}

pub(super) fn name(text: &str) -> Result<SeriesName, Problem> {
    text.parse().map_err(|error: bates_core::NameError| Problem::new(Code::BAD_NAME, error.to_string()))
}

fn of_series<S: Store>() -> OpenApiRouter<Arc<Shared<S>>> {
    OpenApiRouter::new()
        .routes(routes!(series::all))
        .routes(routes!(series::one, series::put, series::patch, series::retire))
        .routes(routes!(scopes::list))
        .routes(routes!(scopes::peek))
        .routes(routes!(next::next))
        .routes(routes!(lease::lease))
        .routes(routes!(lease::held))
        .routes(routes!(lease::give_back))
        .routes(routes!(pools::all))
        .routes(routes!(pools::ask_for))
        .routes(routes!(pools::attach))
        .routes(routes!(pools::next))
        .routes(routes!(trace::validate))
        .routes(routes!(trace::find))
        .routes(routes!(gaps::gaps))
        .routes(routes!(gaps::reconcile))
        .routes(routes!(audit::audit))
}

fn of_documents<S: Store>() -> OpenApiRouter<Arc<Shared<S>>> {
    OpenApiRouter::new()
        .routes(routes!(documents::assign))
        .routes(routes!(documents::reserve))
        .routes(routes!(documents::confirm))
        .routes(routes!(documents::void))
        .routes(routes!(documents::document))
        .routes(routes!(documents::outbox))
        .routes(routes!(documents::counts))
        .routes(routes!(documents::retry_all))
        .routes(routes!(documents::abandon_all))
        .routes(routes!(documents::retry))
        .routes(routes!(documents::abandon))
}

pub(super) fn router<S: Store>(machine: Arc<Machine<S>>, settings: &Settings) -> Router {
    let (router, api) = OpenApiRouter::with_openapi(openapi::outline())
        .merge(of_series())
        .merge(of_documents())
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .split_for_parts();
    let (contract, contract_api) = openg2p::routes();
    let shared = Shared {
        machine,
        body_timeout: settings.body_timeout,
        health: Health::default(),
        ready: Ready::default(),
        turns: Arc::new(Semaphore::new(documents::LINES_OF_ALL)),
        description: openapi::text(&api.nest(openg2p::BASE, contract_api)),
    };
    router
        .nest(openg2p::BASE, contract)
        .route("/api/v1/ids/gaps", get(gaps::gaps::<S>))
        .route("/openapi.json", get(openapi::json::<S>))
        .route("/", get(openapi::page))
        .route("/docs", get(openapi::page))
        .route("/docs/", get(openapi::index))
        .route("/docs/{*file}", get(openapi::file))
        .fallback(async || Problem::new(Code::NOT_FOUND, "nothing is at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::METHOD_NOT_ALLOWED, "the path does not know this method")
        })
        .with_state(Arc::new(shared))
}

/// Parts that are not UTF-8 are refused as bad names.
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

pub(super) struct Series(pub(super) Arc<Entry>);

impl<S: Store> FromRequestParts<Arc<Shared<S>>> for Series {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<Shared<S>>) -> Result<Self, Problem> {
        let Path(series) = Path::<String>::from_request_parts(parts, context).await?;
        context.series(&series).await.map(Self)
    }
}

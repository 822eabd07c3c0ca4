//! Maps paths to handlers. Owns the state that handlers share, and the extractors for path segments.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::routing::get;
use bates_core::Right::{Admin, Define, Operate, Read, Take};
use bates_core::{Denial, ErrorCode, Machine, SeriesEntry, SeriesName, Store};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::health::Health;
use super::openg2p::{self, ReadyIdTypes};
use super::permit::{GuardLayer, Permit, needs};
use super::problem::{Problem, Result};
use super::{
    Settings, audit, documents, gaps, health, lease, metrics, next, openapi, operations, pools, query,
    scopes, series, tokens, trace,
};
use crate::{Access, Defense, Offers};

pub(super) type Context<S> = State<Arc<ServerState<S>>>;

pub(super) struct ServerState<S> {
    pub(super) machine: Arc<Machine<S>>,
    pub(super) access: Arc<Access>,
    pub(super) defense: Arc<Defense>,
    pub(super) body_timeout: Duration,
    pub(super) health: Health,
    pub(super) ready_id_types: ReadyIdTypes,
    /// One permit for each line that is being numbered, over all streams.
    pub(super) line_permits: Arc<Semaphore>,
    pub(super) sink_offers: Offers,
    pub(super) pool_offers: Offers,
    pub(super) openapi_json: Bytes,
}

impl<S: Store> ServerState<S> {
    /// Accepts the tokens that this node knows, from now on. The server also does it every second, which reports tokens
    /// that cannot be read.
    pub(super) fn apply_tokens(&self) {
        let _ = self.access.apply_tokens(|| self.machine.tokens(), self.machine.now());
    }

    /// A series that the caller may use as its route does.
    pub(super) async fn series(&self, name: &str, permit: &Permit) -> Result<Arc<SeriesEntry>> {
        let series = parse_series_name(name)?;
        permit.check_series(&series)?;
        let entry = self.machine.series_or_sync(name).await;
        entry.ok_or_else(|| Denial::UnseenSeries(name.into()).into())
    }

    /// As [`query::parse_only_series`], and the series must exist.
    pub(super) async fn only_series(&self, uri: &Uri, permit: &Permit) -> Result<Option<SeriesName>> {
        let series = query::parse_only_series(uri)?;
        if let Some(name) = &series {
            self.series(name.as_str(), permit).await?;
        }
        Ok(series)
    }

    /// Whether the caller may see positions of a series. Those of a shuffled one tell how many numbers were issued before. A
    /// series that this node does not know may be shuffled.
    pub(super) fn shows_positions(&self, permit: &Permit, series: &SeriesName) -> bool {
        let is_counting = |entry: Arc<SeriesEntry>| !entry.series().pattern().is_shuffled();
        permit.permissions().has(Operate) || self.machine.series(series.as_str()).is_some_and(is_counting)
    }

    /// The series that this caller may use as its route does, by name.
    pub(super) fn visible_series(&self, permit: &Permit) -> Vec<Arc<SeriesEntry>> {
        let registry = self.machine.registry();
        let is_visible = |entry: &&Arc<SeriesEntry>| permit.check_series(entry.series().name()).is_ok();
        registry.entries().filter(is_visible).cloned().collect()
    }
}

pub(super) fn parse_series_name(text: &str) -> Result<SeriesName> {
    text.parse()
        .map_err(|error: bates_core::SeriesNameError| Problem::new(ErrorCode::BAD_NAME, error.to_string()))
}

// The rights of all routes. A route that is not wrapped by `needs` answers 403, and a test lists the public ones.

fn series_routes<S: Store>() -> OpenApiRouter<Arc<ServerState<S>>> {
    OpenApiRouter::new()
        .routes(needs(Read, routes!(series::list_series)))
        .routes(needs(Read, routes!(series::describe_series)))
        .routes(needs(Define, routes!(series::create_series)))
        .routes(needs(Define, routes!(series::change_series)))
        .routes(needs(Define, routes!(series::retire_series)))
        .routes(needs(Read, routes!(scopes::list_scopes)))
        .routes(needs(Read, routes!(scopes::peek_scope)))
        .routes(needs(Take, routes!(next::next_numbers)))
        .routes(needs(Take, routes!(lease::take_lease)))
        .routes(needs(Read, routes!(lease::list_leases)))
        .routes(needs(Take, routes!(lease::return_lease)))
        .routes(needs(Read, routes!(pools::list_pools)))
        .routes(needs(Take, routes!(pools::request_pool)))
        .routes(needs(Take, routes!(pools::attach_to_pool)))
        .routes(needs(Take, routes!(pools::next_pool_numbers)))
        .routes(needs(Read, routes!(trace::validate_identifier)))
        .routes(needs(Read, routes!(trace::trace_identifier)))
        .routes(needs(Read, routes!(gaps::list_gaps)))
        .routes(needs(Operate, routes!(gaps::reconcile)))
        .routes(needs(Read, routes!(audit::list_audit_entries)))
        .routes(needs(Read, routes!(metrics::export_metrics)))
}

fn caller_routes<S: Store>() -> OpenApiRouter<Arc<ServerState<S>>> {
    OpenApiRouter::new()
        .routes(needs(Admin, routes!(tokens::list_tokens)))
        .routes(needs(Admin, routes!(tokens::add_token)))
        .routes(needs(Admin, routes!(tokens::rotate_token)))
        .routes(needs(Admin, routes!(tokens::revoke_token)))
        .routes(needs(Read, routes!(operations::list_operations)))
        .routes(needs(Admin, routes!(operations::list_chains)))
        .routes(needs(Admin, routes!(operations::list_chain_records)))
}

fn document_routes<S: Store>() -> OpenApiRouter<Arc<ServerState<S>>> {
    OpenApiRouter::new()
        .routes(needs(Take, routes!(documents::number_document)))
        .routes(needs(Take, routes!(documents::reserve_number)))
        .routes(needs(Take, routes!(documents::confirm_reservation)))
        .routes(needs(Take, routes!(documents::void_reservation)))
        .routes(needs(Read, routes!(documents::find_document)))
        .routes(needs(Read, routes!(documents::list_documents)))
        .routes(needs(Read, routes!(documents::count_documents)))
        .routes(needs(Operate, routes!(documents::retry_dead_documents)))
        .routes(needs(Operate, routes!(documents::abandon_dead_documents)))
        .routes(needs(Operate, routes!(documents::retry_document)))
        .routes(needs(Operate, routes!(documents::abandon_document)))
}

pub(super) fn router<S: Store>(machine: Arc<Machine<S>>, settings: &Settings) -> Router {
    let (router, api) = OpenApiRouter::with_openapi(openapi::base_document())
        .merge(series_routes())
        .merge(document_routes())
        .merge(caller_routes())
        .routes(routes!(health::check_liveness))
        .routes(routes!(health::check_readiness))
        .split_for_parts();
    let (contract, contract_api) = openg2p::routes();
    let state = ServerState {
        machine,
        access: settings.access.clone(),
        defense: settings.defense.clone(),
        body_timeout: settings.body_timeout,
        health: Health::default(),
        ready_id_types: ReadyIdTypes::default(),
        sink_offers: settings.sink_offers.clone(),
        pool_offers: settings.pool_offers.clone(),
        line_permits: Arc::new(Semaphore::new(documents::SERVER_LINES_MAX)),
        openapi_json: openapi::to_json(&api.nest(openg2p::BASE, contract_api)),
    };
    router
        .nest(openg2p::BASE, contract)
        .route("/api/v1/ids/gaps", get(gaps::list_gaps::<S>).layer(GuardLayer(Read)))
        .route("/openapi.json", get(openapi::serve_document::<S>))
        .route("/", get(openapi::redirect_to_ui))
        .route("/docs", get(openapi::redirect_to_ui))
        .route("/docs/", get(async || openapi::serve_ui_file("index.html")))
        .route("/docs/{*file}", get(async |Path(name): Path<String>| openapi::serve_ui_file(&name)))
        .fallback(async || Problem::new(ErrorCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(ErrorCode::METHOD_NOT_ALLOWED, "this path does not support this method")
        })
        .with_state(Arc::new(state))
}

/// Segments of the path. A segment that is not UTF-8 is refused as a bad name.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, C: Send + Sync> FromRequestParts<C> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &C) -> Result<Self> {
        // PostgreSQL stores no NUL; both stores refuse it alike.
        if parts.uri.path().contains("%00") {
            return Err(Problem::new(ErrorCode::BAD_NAME, "a segment of the path has a NUL character (%00)"));
        }
        match axum::extract::Path::from_request_parts(parts, context).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(_) => Err(Problem::new(ErrorCode::BAD_NAME, "a segment of the path is not UTF-8")),
        }
    }
}

/// The series that the path names, which the caller may use as the route does.
pub(super) struct Series(pub(super) Arc<SeriesEntry>);

impl<S: Store> FromRequestParts<Arc<ServerState<S>>> for Series {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<ServerState<S>>) -> Result<Self> {
        let permit = Permit::from_request_parts(parts, context).await?;
        let Path(name) = Path::<String>::from_request_parts(parts, context).await?;
        context.series(&name, &permit).await.map(Self)
    }
}

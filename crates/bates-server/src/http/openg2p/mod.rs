//! `/v1/idgenerator`: the contract of the OpenG2P id-generator, for registries that know no other. Owns its paths, its
//! envelope and its codes; the numbers are those of the machine, and a series is an ID type if it can be one.

mod about;
mod envelope;
mod id_type;
mod issue;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use bates_core::{Code, Store};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi;
use super::routes::Shared;
use envelope::Failure;

pub(super) use about::Ready;
pub use id_type::length as id_length;

pub(super) const BASE: &str = "/v1/idgenerator";

pub(super) fn routes<S: Store>() -> (Router<Arc<Shared<S>>>, utoipa::openapi::OpenApi) {
    let (router, api) = OpenApiRouter::new()
        .routes(routes!(issue::issue))
        .routes(routes!(issue::batch))
        .routes(routes!(issue::validate))
        .routes(routes!(about::health))
        .routes(routes!(about::version))
        .routes(routes!(about::config))
        .split_for_parts();
    let not_found = async || Failure::of(Code::NOT_FOUND, "nothing is at this path");
    let router = router
        .route("/openapi.json", get(openapi::json::<S>))
        .route("/", get(not_found))
        .fallback(not_found)
        .method_not_allowed_fallback(async || {
            Failure::of(Code::METHOD_NOT_ALLOWED, "the path does not know this method")
        });
    (router, api)
}

/// Paths that reveal nothing about numbers: probes send no secret.
pub(super) fn is_public(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| matches!(rest, "/health" | "/version" | "/openapi.json"))
}

pub(super) fn is_here(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.starts_with('/'))
}

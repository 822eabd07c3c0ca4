//! `/v1/idgenerator`: the contract of the OpenG2P id-generator, for registries that are written for it. Owns its paths,
//! its envelope and its error codes. Every series that satisfies the rules of an ID type is one; the machine issues its
//! numbers.

mod envelope;
mod id_type;
mod issue;
mod status;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use bates_core::Right::{Read, Take};
use bates_core::{ErrorCode, Store};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi;
use super::permit::needs;
use super::routes::ServerState;
use envelope::Failure;

pub use id_type::{id_length, is_id_type_name};
pub(super) use status::ReadyIdTypes;

pub(super) const BASE: &str = "/v1/idgenerator";

pub(super) fn routes<S: Store>() -> (Router<Arc<ServerState<S>>>, utoipa::openapi::OpenApi) {
    let (router, api) = OpenApiRouter::new()
        .routes(needs(Take, routes!(issue::issue_id)))
        .routes(needs(Take, routes!(issue::issue_ids)))
        .routes(needs(Read, routes!(issue::validate_id)))
        .routes(routes!(status::check_health))
        .routes(routes!(status::show_version))
        .routes(needs(Read, routes!(status::show_config)))
        .split_for_parts();
    let not_found = async || Failure::with_bates_code(ErrorCode::NOT_FOUND, "there is nothing at this path");
    let router = router
        .route("/openapi.json", get(openapi::serve_document::<S>))
        .route("/", get(not_found))
        .fallback(not_found)
        .method_not_allowed_fallback(async || {
            let message = "this path does not support this method";
            Failure::with_bates_code(ErrorCode::METHOD_NOT_ALLOWED, message)
        });
    (router, api)
}

/// Paths that need no secret: they reveal nothing about numbers, and health probes cannot send one.
pub(super) fn is_probe(path: &str) -> bool {
    path.strip_prefix(BASE) == Some("/health")
}

pub(super) fn is_public(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| matches!(rest, "/version" | "/openapi.json"))
}

pub(super) fn is_contract_path(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.starts_with('/'))
}

//! `/v1/idgenerator`: the contract of the OpenG2P id-generator, for registries that know no other. Owns its paths, its
//! envelope and its codes; the numbers are those of the machine, and a series is an ID type if it can be one.

mod about;
mod envelope;
mod id_type;
mod issue;
mod ready;

use axum::Router;
use axum::routing::{get, post};
use bates_core::{Code, Entry, Store};

use super::openapi;
use super::routes::Context;
use envelope::Failure;

pub(super) use about::{__path_config, __path_health, __path_version};
pub(super) use issue::{__path_batch, __path_issue, __path_validate};
pub(super) use ready::Ready;

/// How many digits an identifier of a series has, if the series is an ID type of the contract.
pub fn id_length(entry: &Entry) -> Option<usize> {
    id_type::length(entry)
}

/// Where the contract begins.
pub(super) const BASE: &str = "/v1/idgenerator";

/// The paths below [`BASE`].
pub(super) fn routes<S: Store>() -> Router<Context<S>> {
    Router::new()
        .route("/{id_type}/id", post(issue::issue::<S>))
        .route("/{id_type}/ids", post(issue::batch::<S>))
        .route("/{id_type}/id/validate/{id}", get(issue::validate::<S>))
        .route("/health", get(about::health::<S>))
        .route("/version", get(about::version::<S>))
        .route("/config", get(about::config::<S>))
        .route("/openapi.json", get(openapi::json))
        .route("/", get(async || Failure::of(Code::NOT_FOUND, "nothing is at this path")))
        .fallback(async || Failure::of(Code::NOT_FOUND, "nothing is at this path"))
        .method_not_allowed_fallback(async || {
            Failure::of(Code::METHOD_NOT_ALLOWED, "the path does not know this method")
        })
}

/// What tells nothing about numbers, and is open to everybody: probes send no secret.
pub(super) fn is_public(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| matches!(rest, "/health" | "/version" | "/openapi.json"))
}

/// Whether a path is of the contract.
pub(super) fn is_here(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.starts_with('/'))
}

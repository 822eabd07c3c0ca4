//! Shared pools: which there are, one asked for, and what a program needs that takes from one.

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse;
use bates_api::{
    AttachRequest, Attachment, PoolList, PoolNumberRequest, PoolNumbers, PoolRequest, PoolStatus,
};
use bates_core::{By, PoolLook, PoolRefused, Server, Store};

use super::ask::{self, BODY_BYTES_MAX};
use super::problem::Problem;
use super::query;
use super::routes::{Context, Path};
use crate::Caller;

/// Numbers that are given at once.
const COUNT_MAX: u64 = 100_000;

/// List shared pools
#[utoipa::path(get, path = "/v1/pools", tag = "pools",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = PoolList), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such series, or it has no pools")))]
pub(super) async fn all<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<PoolList>, Problem> {
    let only = query::only_series(&context, &uri).await?.map(|entry| entry.series().name().clone());
    let pools = context.machine.look_at_pools(only.as_ref()).await?;
    Ok(Json(PoolList { pools: pools.into_iter().map(spell_pool).collect() }))
}

/// Keep a shared pool for a scope from now on
#[utoipa::path(post, path = "/v1/series/{series}/pool", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = Option<PoolRequest>),
    responses((status = 202, body = PoolStatus, description = "It is being filled"),
        (status = "default", description = "There is no pool", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn ask_for<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    body: Body,
) -> Result<impl IntoResponse, Problem> {
    let entry = context.series(&series).await?;
    let body = ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?;
    let ask: PoolRequest = if body.is_empty() { PoolRequest::default() } else { ask::json(&body)? };
    let parameters: Vec<_> = ask.scope.iter().collect();
    let pool = context.machine.ask_for_pool(&entry, ask::name(&parameters, None)).await?;
    Ok((StatusCode::ACCEPTED, Json(spell_pool(pool))))
}

/// Learn the epoch of a pool before taking from it
///
/// Tell which Redis server you see, with every new connection. One that Bates does not know is looked at, and if it
/// forgot what was taken, its list is emptied and a new epoch begins. Take only while the marker beside the list has
/// this epoch, and the server has these ids: both can be compared in the script that takes.
#[utoipa::path(post, path = "/v1/series/{series}/pool/attach", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = AttachRequest),
    responses((status = 200, body = Attachment),
        (status = "default", description = "Bates sees another server, or none", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn attach<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    body: Body,
) -> Result<Json<Attachment>, Problem> {
    let entry = context.series(&series).await?;
    let ask: AttachRequest = ask::json(&ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?)?;
    let server = Server { run: ask.run_id, replication: ask.replication_id };
    let parameters: Vec<_> = ask.scope.iter().collect();
    let (key, epoch) = context.machine.attach(&entry, ask::name(&parameters, None), &server).await?;
    Ok(Json(Attachment { key: key.into(), epoch, store: context.machine.identity().to_string() }))
}

/// Take numbers as the list of a pool holds them, without Redis
#[utoipa::path(post, path = "/v1/series/{series}/pool/next", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = PoolNumberRequest),
    responses((status = 200, body = PoolNumbers),
        (status = "default", description = "No number was issued", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn next<S: Store>(
    State(context): State<Context<S>>,
    Extension(caller): Extension<Caller>,
    Path(series): Path<String>,
    body: Body,
) -> Result<Json<PoolNumbers>, Problem> {
    let entry = context.series(&series).await?;
    let ask: PoolNumberRequest = ask::json(&ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?)?;
    ask::check_count(ask.count, COUNT_MAX)?;
    let Some(kept) = context.machine.kept(entry.series().name()) else {
        return Err(PoolRefused::None(series.into()).into());
    };
    let parameters: Vec<_> = ask.scope.iter().collect();
    let by = By::http(caller.who());
    let numbers = context.machine.next(&entry, ask::name(&parameters, None), ask.count, by).await?;
    Ok(Json(PoolNumbers { values: numbers.values_as(kept.settings().value).map(str::to_owned).collect() }))
}

fn spell_pool(PoolLook { place, key, level, epoch }: PoolLook) -> PoolStatus {
    let (scope, _) = query::spell_scope(&place.scope);
    PoolStatus { series: place.series.to_string(), scope, key: key.into(), level, epoch }
}

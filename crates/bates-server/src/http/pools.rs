//! Shared pools: listing and requesting them, and attaching programs that take numbers from them.

use axum::Json;
use axum::http::{Extensions, StatusCode, Uri};
use bates_api as api;
use bates_api::{AttachRequest, Attachment, PoolList, PoolNumberRequest, PoolNumbers, PoolRequest};
use bates_core::{PoolError, PoolStatus, ServerIdentity, Store};

use super::permit::Permit;
use super::problem::{JsonResult, Result};
use super::request::{self, JsonBody, OptionalJsonBody, Unkeyed};
use super::routes::{Context, Series};
use super::{meter, query};

const COUNT_MAX: u64 = 100_000;

/// List shared pools
#[utoipa::path(get, path = "/v1/pools", tag = "pools",
    params(("series" = Option<String>, Query, description = "Only pools of this series")),
    responses((status = 200, body = PoolList), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series, or it has no pools")))]
pub(super) async fn list_pools<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<PoolList> {
    let mut pools = context.machine.pool_statuses(context.only_series(&uri, &permit).await?.as_ref()).await?;
    pools.retain(|pool| permit.check_scope_id(&pool.scope_id).is_ok());
    Ok(Json(PoolList { pools: pools.into_iter().map(to_api_pool).collect() }))
}

/// Request a shared pool for a scope
///
/// From now on the server fills the list of this scope in Redis.
#[utoipa::path(post, path = "/v1/series/{series}/pool", tag = "pools",
    params(("series" = String, Path, description = "The name of the series", example = "document")),
    request_body(content = Option<PoolRequest>),
    responses((status = 202, body = api::PoolStatus, description = "The server is filling the pool"),
        (status = "default", description = "The series or the scope cannot have a pool, or the store failed", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn request_pool<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    OptionalJsonBody(request): OptionalJsonBody<PoolRequest>,
) -> Result<(StatusCode, Json<api::PoolStatus>)> {
    let pairs = request.scope.pairs();
    let params = permit.scope(&pairs, None)?;
    let pool = context.machine.request_pool(&entry, params, permit.actor()).await?;
    Ok((StatusCode::ACCEPTED, Json(to_api_pool(pool))))
}

/// Attach to a pool before taking numbers from it
///
/// A program sends the ids of its Redis server with every new connection, and gets the current epoch of the pool. If Bates
/// does not know that server yet, it checks it; if the server has lost data, Bates empties the list and starts a new epoch.
/// A program may take a number only while the marker of the list has this epoch and the server has these ids. The script
/// that takes numbers can compare both.
#[utoipa::path(post, path = "/v1/series/{series}/pool/attach", tag = "pools",
    params(("series" = String, Path, description = "The name of the series", example = "document")),
    request_body(content = AttachRequest),
    responses((status = 200, body = Attachment),
        (status = "default", description = "Bates is connected to another Redis server, or to none", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn attach_to_pool<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    JsonBody(request): JsonBody<AttachRequest>,
) -> JsonResult<Attachment> {
    let server = ServerIdentity { run: request.run_id, replication: request.replication_id };
    let pairs = request.scope.pairs();
    let params = permit.scope(&pairs, None)?;
    let (key, epoch) = context.machine.attach_client(&entry, params, &server).await?;
    Ok(Json(Attachment { key: key.into(), epoch, store: context.machine.identity().to_string() }))
}

/// Take numbers from Bates instead of from the list of a pool
///
/// The numbers have the form in which the list holds them. A request with the header `Idempotency-Key` is refused
/// with `not_repeatable`.
#[utoipa::path(post, path = "/v1/series/{series}/pool/next", tag = "pools",
    params(("series" = String, Path, description = "The name of the series", example = "document")),
    request_body(content = PoolNumberRequest),
    responses((status = 200, body = PoolNumbers),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn next_pool_numbers<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    _: Unkeyed,
    extensions: Extensions,
    JsonBody(request): JsonBody<PoolNumberRequest>,
) -> JsonResult<PoolNumbers> {
    request::check_count(request.count, COUNT_MAX)?;
    let series = entry.series().name();
    let pools = context.machine.pool_set(series).ok_or_else(|| PoolError::NoPool(series.as_str().into()))?;
    let pairs = request.scope.pairs();
    let params = permit.scope(&pairs, None)?;
    let (machine, count) = (&context.machine, request.count);
    meter::reserve_numbers(&extensions, machine, &entry, params, count)?;
    let take = machine.next(&entry, params, count, permit.actor());
    let numbers = permit.take(machine, count, take, |numbers| numbers.len() as u64).await?;
    Ok(Json(PoolNumbers { values: numbers.values_as(pools.settings().value).map(str::to_owned).collect() }))
}

fn to_api_pool(PoolStatus { scope_id, key, level, epoch }: PoolStatus) -> api::PoolStatus {
    let (scope, _) = query::to_api_scope(&scope_id.scope);
    api::PoolStatus { series: scope_id.series.to_string(), scope, key: key.into(), level, epoch }
}

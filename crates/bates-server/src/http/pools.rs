//! Shared pools: which there are, one asked for, and what a program needs that takes from one.

use axum::Json;
use axum::extract::Extension;
use axum::http::{StatusCode, Uri};
use bates_api::{
    AttachRequest, Attachment, PoolList, PoolNumberRequest, PoolNumbers, PoolRequest, PoolStatus,
};
use bates_core::{By, PoolLook, PoolRefused, Server, Store};

use super::ask::{self, Ask, AskOrDefault};
use super::problem::{Answer, Problem};
use super::query;
use super::routes::{Context, Series};
use crate::Caller;

const COUNT_MAX: u64 = 100_000;

/// List shared pools
#[utoipa::path(get, path = "/v1/pools", tag = "pools",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = PoolList), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series, or it has no pools")))]
pub(super) async fn all<S: Store>(context: Context<S>, uri: Uri) -> Answer<PoolList> {
    let pools = context.machine.look_at_pools(context.only_series(&uri).await?.as_ref()).await?;
    Ok(Json(PoolList { pools: pools.into_iter().map(spell_pool).collect() }))
}

/// Keep a shared pool for a scope from now on
#[utoipa::path(post, path = "/v1/series/{series}/pool", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = Option<PoolRequest>),
    responses((status = 202, body = PoolStatus, description = "It is being filled"),
        (status = "default", description = "There is no pool", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn ask_for<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    AskOrDefault(ask): AskOrDefault<PoolRequest>,
) -> Result<(StatusCode, Json<PoolStatus>), Problem> {
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
        (status = "default", description = "Bates sees another server, or none", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn attach<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    Ask(ask): Ask<AttachRequest>,
) -> Answer<Attachment> {
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
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn next<S: Store>(
    context: Context<S>,
    Extension(caller): Extension<Caller>,
    Series(entry): Series,
    Ask(ask): Ask<PoolNumberRequest>,
) -> Answer<PoolNumbers> {
    ask::check_count(ask.count, COUNT_MAX)?;
    let series = entry.series().name();
    let kept = context.machine.kept(series).ok_or_else(|| PoolRefused::None(series.as_str().into()))?;
    let parameters: Vec<_> = ask.scope.iter().collect();
    let by = By::http(caller.who());
    let numbers = context.machine.next(&entry, ask::name(&parameters, None), ask.count, by).await?;
    Ok(Json(PoolNumbers { values: numbers.values_as(kept.settings().value).map(str::to_owned).collect() }))
}

fn spell_pool(PoolLook { place, key, level, epoch }: PoolLook) -> PoolStatus {
    let (scope, _) = query::spell_scope(&place.scope);
    PoolStatus { series: place.series.to_string(), scope, key: key.into(), level, epoch }
}

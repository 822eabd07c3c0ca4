//! Shared pools: which there are, one asked for, and what a program needs that takes from one.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse;
use bates_core::{By, Code, PoolLook, PoolRefused, Server, Store};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::ask::{self, Pairs};
use super::problem::Problem;
use super::routes::{Context, Path};
use crate::Caller;

/// The largest body.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Numbers that are given at once.
const COUNT_MAX: u64 = 100_000;

/// A pool that is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskPool {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"}))]
    scope: Pairs,
}

/// Somebody is about to take from a pool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskAttach {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"}))]
    scope: Pairs,
    /// `run_id` of the Redis server that you see.
    run_id: Box<str>,
    /// Its `master_replid`.
    replication_id: Box<str>,
}

/// Numbers that are wanted in the place of those of a pool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskValues {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"}))]
    scope: Pairs,
    /// How many; 1 unless said.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 100_000)]
    count: u64,
}

fn one() -> u64 {
    1
}

/// A pool.
#[derive(Serialize, ToSchema)]
pub(super) struct KnownPool {
    /// The series.
    series: String,
    /// The scope.
    #[schema(example = json!({"project": "PROJ", "type": "9012"}))]
    scope: BTreeMap<String, String>,
    /// The key of its list.
    #[schema(example = "id-pool:PROJ:9012")]
    key: String,
    /// Numbers in it when it was last looked at; missing if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u64>,
    /// Raised whenever Redis forgot.
    epoch: u64,
}

impl KnownPool {
    fn of(PoolLook { place, key, level, epoch }: PoolLook) -> Self {
        let (parameters, _) = place.scope.parts();
        Self {
            series: place.series.to_string(),
            scope: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            key: key.into(),
            level,
            epoch,
        }
    }
}

/// Pools.
#[derive(Serialize, ToSchema)]
pub(super) struct KnownPools {
    /// Each pool that was ever asked for.
    pools: Vec<KnownPool>,
}

/// What a program needs that takes from a pool.
#[derive(Serialize, ToSchema)]
pub(super) struct Attached {
    /// The key of the list. Its marker is the hash `{KEY}:bates`.
    #[schema(example = "id-pool:PROJ:9012")]
    key: String,
    /// The epoch that the marker must have.
    epoch: u64,
    /// The store that the marker must name: the field `store`.
    #[schema(value_type = String, example = "6f0c1f3e-8f1d-4f43-9c41-2b6f2b7f1a55")]
    store: Uuid,
}

/// Numbers as the list of a pool holds them.
#[derive(Serialize, ToSchema)]
pub(super) struct Values {
    /// As many as were asked for; fewer where the scope ends.
    values: Vec<String>,
}

/// List shared pools
#[utoipa::path(get, path = "/v1/pools", tag = "pools",
    params(("series" = Option<String>, Query, description = "Only those of this series")),
    responses((status = 200, body = KnownPools), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such series, or it has no pools")))]
pub(super) async fn all<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<KnownPools>, Problem> {
    let mut only = None;
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            "series" => only = Some(context.series(&value).await?.series().name().clone()),
            _ => return Err(Problem::new(Code::BAD_ARGUMENTS, "the query may have series")),
        }
    }
    let pools = context.machine.look_at_pools(only.as_ref()).await?;
    Ok(Json(KnownPools { pools: pools.into_iter().map(KnownPool::of).collect() }))
}

/// Keep a shared pool for a scope from now on
#[utoipa::path(post, path = "/v1/series/{series}/pool", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = Option<AskPool>),
    responses((status = 202, body = KnownPool, description = "It is being filled"),
        (status = "default", description = "There is no pool", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn ask_for<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    body: Body,
) -> Result<impl IntoResponse, Problem> {
    let entry = context.series(&series).await?;
    let body = ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?;
    let ask: AskPool = if body.is_empty() { AskPool::default() } else { ask::json(&body)? };
    let parameters = ask.scope.parameters();
    let pool = context.machine.ask_for_pool(&entry, ask::name(&parameters, None)).await?;
    Ok((StatusCode::ACCEPTED, Json(KnownPool::of(pool))))
}

/// Learn the epoch of a pool before taking from it
///
/// Tell which Redis server you see, with every new connection. One that Bates does not know is looked at, and if it
/// forgot what was taken, its list is emptied and a new epoch begins. Take only while the marker beside the list has
/// this epoch, and the server has these ids: both can be compared in the script that takes.
#[utoipa::path(post, path = "/v1/series/{series}/pool/attach", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = AskAttach),
    responses((status = 200, body = Attached),
        (status = "default", description = "Bates sees another server, or none", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn attach<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    body: Body,
) -> Result<Json<Attached>, Problem> {
    let entry = context.series(&series).await?;
    let ask: AskAttach = ask::json(&ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?)?;
    let server = Server { run: ask.run_id, replication: ask.replication_id };
    let parameters = ask.scope.parameters();
    let (key, epoch) = context.machine.attach(&entry, ask::name(&parameters, None), &server).await?;
    Ok(Json(Attached { key: key.into(), epoch, store: context.machine.identity() }))
}

/// Take numbers as the list of a pool holds them, without Redis
#[utoipa::path(post, path = "/v1/series/{series}/pool/next", tag = "pools",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = AskValues),
    responses((status = 200, body = Values),
        (status = "default", description = "No number was issued", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn next<S: Store>(
    State(context): State<Context<S>>,
    Extension(caller): Extension<Caller>,
    Path(series): Path<String>,
    body: Body,
) -> Result<Json<Values>, Problem> {
    let entry = context.series(&series).await?;
    let ask: AskValues = ask::json(&ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?)?;
    if !(1..=COUNT_MAX).contains(&ask.count) {
        let detail = format!("the count is {}; it may be 1 to {COUNT_MAX}", ask.count);
        return Err(Problem::new(Code::BAD_COUNT, detail));
    }
    let Some(kept) = context.machine.kept(entry.series().name()) else {
        return Err(PoolRefused::None(series.into()).into());
    };
    let parameters = ask.scope.parameters();
    let by = By::http(caller.who());
    let numbers = context.machine.next(&entry, ask::name(&parameters, None), ask.count, by).await?;
    Ok(Json(Values { values: numbers.values_as(kept.settings().value).map(str::to_owned).collect() }))
}

impl From<PoolRefused> for Problem {
    fn from(error: PoolRefused) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

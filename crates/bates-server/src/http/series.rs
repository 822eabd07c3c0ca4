//! `/v1/series`: which series there are, and series made, changed and retired at run time.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use bates_core::{Code, Entry, Made, Origin, Store};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ask;
use super::problem::Problem;
use super::routes::{Context, Path, name};
use crate::series::{DescribedLimits, Description};

/// The largest description: ten thousand restricted words.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A series, and what follows from its description.
#[derive(Serialize, ToSchema)]
pub(super) struct Series {
    /// Its name.
    #[schema(example = "document")]
    name: String,
    #[serde(flatten)]
    description: Description,
    /// The parameters of a scope.
    parameters: Vec<String>,
    /// The last position of a scope.
    last: u64,
    /// How many numbers a scope has.
    capacity: u64,
    /// Whether the capacity is an estimate, because of rejection rules.
    capacity_is_estimate: bool,
    /// Who described it, and so who may change it: `file` or `api`.
    origin: &'static str,
}

impl Series {
    fn of(entry: &Entry) -> Result<Self, Problem> {
        let description = Description::read(&entry.spec().description);
        let unread =
            |error| Problem::new(Code::BAD_SERIES, format!("its description cannot be read: {error}"));
        let (start, end) = (entry.series().start().value(), entry.series().end());
        Ok(Self {
            name: entry.series().name().to_string(),
            description: description.map_err(unread)?,
            parameters: entry.parameters().map(str::to_owned).collect(),
            last: end - 1,
            capacity: entry.numbers_in(end - start),
            capacity_is_estimate: !entry.series().pattern().reject().is_empty(),
            origin: match entry.origin() {
                Origin::File => "file",
                Origin::Api => "api",
            },
        })
    }
}

/// All series.
#[derive(Serialize, ToSchema)]
pub(super) struct AllSeries {
    /// By name.
    series: Vec<Series>,
}

/// What may be changed of a series at any time; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Amendment {
    /// The limits; those that are left out get their defaults.
    limits: Option<DescribedLimits>,
    /// A rule set that numbers must keep, or `none`.
    reject: Option<String>,
    /// Digits or words that may not occur in a number.
    restrict: Option<Vec<String>>,
}

/// What became of the numbers that a retired series held in memory.
#[derive(Serialize, ToSchema)]
pub(super) struct Retired {
    /// Unused numbers that went back to their cursors.
    returned: u64,
    /// Numbers that remain as gaps.
    gaps: u64,
}

/// List the series
#[utoipa::path(get, path = "/v1/series", tag = "series", responses((status = 200, body = AllSeries)))]
pub(super) async fn all<S: Store>(State(context): State<Context<S>>) -> Result<Json<AllSeries>, Problem> {
    let series =
        context.machine.registry().entries().map(|entry| Series::of(entry)).collect::<Result<_, _>>()?;
    Ok(Json(AllSeries { series }))
}

/// Describe a series
#[utoipa::path(get, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    responses((status = 200, body = Series), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn one<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
) -> Result<Json<Series>, Problem> {
    Ok(Json(Series::of(&*context.series(&series)?)?))
}

/// Make a series
///
/// Making the same series again changes nothing. A series that was retired goes on where it was; one of its
/// name with another pattern, order, start, reset or time zone is refused for ever.
#[utoipa::path(put, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    request_body = Description,
    responses((status = 201, body = Series, description = "It was made"), (status = 200, body = Series, description = "It was there"),
        (status = "default", body = Problem, content_type = "application/problem+json", description = "It was refused")))]
pub(super) async fn put<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<Series>), Problem> {
    let name = name(&series)?;
    let body = ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?;
    let description: Description = ask::json(&body)?;
    let made = context.machine.create(description.spec(name)?).await?;
    let status = if made == Made::New { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Series::of(&*context.series(&series)?)?)))
}

/// Change the limits or the rejection rules of a series
///
/// No identifier moves: rules only decide which positions are skipped from now on.
#[utoipa::path(patch, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    request_body = Amendment,
    responses((status = 200, body = Series), (status = "default", body = Problem, content_type = "application/problem+json", description = "It was refused")))]
pub(super) async fn patch<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    body: Body,
) -> Result<Json<Series>, Problem> {
    let entry = context.series(&series)?;
    let body = ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?;
    let Amendment { limits, reject, restrict } = ask::json(&body)?;
    let Series { mut description, .. } = Series::of(&entry)?;
    description.limits = limits.unwrap_or(description.limits);
    description.reject = reject.or(description.reject).filter(|rules| rules != "none");
    description.restrict = restrict.unwrap_or(description.restrict);
    context.machine.amend(description.spec(entry.series().name().clone())?).await?;
    Ok(Json(Series::of(&*context.series(&series)?)?))
}

/// Retire a series
///
/// It issues nothing more. Its cursors stay for ever, and a series made again under its name goes on from them.
#[utoipa::path(delete, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    responses((status = 200, body = Retired), (status = "default", body = Problem, content_type = "application/problem+json", description = "It was refused")))]
pub(super) async fn retire<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
) -> Result<Json<Retired>, Problem> {
    let closed = context.machine.retire(&name(&series)?).await?;
    Ok(Json(Retired { returned: closed.returned, gaps: closed.gaps }))
}

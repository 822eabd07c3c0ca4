//! `/v1/series`: lists, creates, changes and retires series.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::http::{StatusCode, Uri};
use bates_api::{Retirement, Series, SeriesDescription, SeriesPage, SeriesPatch};
use bates_core::{
    ClientLeaseFilter, CreateOutcome, ErrorCode, MachineError, Promise, Registry, Right, SeriesEntry,
    SeriesName, SeriesOrigin, SeriesPattern, SeriesSpec, Store,
};

use super::permit::Permit;
use super::problem::{JsonResult, Problem, Result};
use super::query::{self, ListQuery};
use super::request::{self, JsonBody};
use super::routes::{self, Context, Path, parse_series_name};
use crate::{Offers, series};

/// Enough for ten thousand restricted words.
const BODY_BYTES_MAX: usize = 1024 * 1024;

fn to_api_series(entry: &SeriesEntry) -> Result<Series> {
    let mut description = parse_description(entry.spec())?;
    description.start = Some(entry.series().start().value());
    // The promise may have changed since the configuration file was written.
    entry.series().promise().name().clone_into(&mut description.promise);
    let origin = match entry.origin() {
        SeriesOrigin::File => "file",
        SeriesOrigin::Api => "api",
    };
    Ok(Series {
        name: entry.series().name().to_string(),
        description,
        parameters: entry.parameters().map(str::to_owned).collect(),
        last: entry.series().end() - 1,
        capacity: entry.capacity(),
        capacity_is_estimate: !entry.series().pattern().reject().is_empty(),
        origin: origin.to_owned(),
    })
}

fn parse_description(spec: &SeriesSpec) -> Result<SeriesDescription> {
    let invalid = |error: serde_json::Error| {
        let detail = format!("the stored description of series {:?} is invalid: {error}", spec.name.as_str());
        Problem::new(ErrorCode::BAD_SERIES, detail)
    };
    serde_json::from_str(&spec.description).map_err(invalid)
}

fn apply_patch(patch: &SeriesPatch, description: &SeriesDescription) -> Result<SeriesDescription> {
    let invalid = |error: serde_json::Error| Problem::new(ErrorCode::BAD_BODY, error.to_string());
    let mut merged = serde_json::to_value(description).map_err(invalid)?;
    merge(&mut merged, serde_json::to_value(patch).map_err(invalid)?);
    serde_json::from_value(merged).map_err(invalid)
}

/// A JSON merge patch (RFC 7396): objects are merged, `null` removes a field, any other value replaces it.
fn merge(target: &mut serde_json::Value, patch: serde_json::Value) {
    let (Some(fields), serde_json::Value::Object(changes)) = (target.as_object_mut(), patch) else { return };
    for (name, change) in changes {
        match (fields.get_mut(&name), change) {
            (_, serde_json::Value::Null) => drop(fields.remove(&name)),
            (Some(inner), change) if inner.is_object() && change.is_object() => merge(inner, change),
            (_, change) => drop(fields.insert(name, change)),
        }
    }
}

/// List series
#[utoipa::path(get, path = "/v1/series", tag = "series",
    params(("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "The maximum number of series: 1 to 1,000, by default 100")),
    responses((status = 200, body = SeriesPage), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid")))]
pub(super) async fn list_series<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<SeriesPage> {
    let query = ListQuery::parse(&uri, query::SMALL_PAGE)?;
    query.check_rest(&["after", "limit"])?;
    let after = query.after(|after| after.parse().ok())?;
    let registry = context.machine.registry();
    let is_visible = |entry: &&Arc<SeriesEntry>| permit.check_series(entry.series().name()).is_ok();
    let page = registry.entries_after(after.as_ref()).filter(is_visible).take(query.limit);
    let series = page.map(|entry| to_api_series(entry)).collect::<Result<Vec<_>>>()?;
    let after = query.next_after(&series, |last| last.name.clone());
    Ok(Json(SeriesPage { series, after }))
}

/// Describe a series
#[utoipa::path(get, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "document")),
    responses((status = 200, body = Series), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn describe_series<S: Store>(
    _: Context<S>,
    routes::Series(entry): routes::Series,
) -> JsonResult<Series> {
    to_api_series(&entry).map(Json)
}

/// Create a series
///
/// Creating the same series again changes nothing. A series that was retired continues from its cursors. A series with
/// the name of a retired one and another pattern, order, start, reset or time zone is refused forever.
#[utoipa::path(put, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    request_body = SeriesDescription,
    responses((status = 201, body = Series, description = "The series was created"), (status = 200, body = Series, description = "The series already existed"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The series was refused")))]
pub(super) async fn create_series<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(series): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<Series>)> {
    let name = parse_series_name(&series)?;
    check_may_create(&permit, &name)?;
    let body = request::read_body(body, BODY_BYTES_MAX, context.body_timeout).await?;
    let spec = series::build_spec(&parse_new_description(&body, &permit)?, name)?;
    // A change keeps the key, which may be from an operator.
    permit.permissions().check_key(&spec)?;
    check_offer("sink", &context.sink_offers, spec.offered_sink.as_deref(), &spec.name)?;
    check_offer("pool", &context.pool_offers, spec.offered_pool.as_deref(), &spec.name)?;
    // Checked when its turn comes: a caller may wait for the changes of others, and lose its secret meanwhile.
    let admit = |registry: &Registry| {
        permit.check_valid().map_err(CreateError::Refused)?;
        check_definition(registry, &permit, &spec).map_err(CreateError::Refused)
    };
    let created = context.machine.create_series_if(spec.clone(), admit, permit.actor()).await;
    let outcome = created.map_err(|error| match error {
        CreateError::Refused(problem) => problem,
        CreateError::Machine(error) => to_problem(error, &permit),
    })?;
    let status = if outcome == CreateOutcome::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(to_api_series(&*context.series(&series, &permit).await?)?)))
}

/// A series that names no `scopes_max` gets at most that of its caller.
fn parse_new_description(body: &[u8], permit: &Permit) -> Result<SeriesDescription> {
    let mut description: SeriesDescription = request::parse_json(body)?;
    let named: serde_json::Value = request::parse_json(body)?;
    if named.pointer("/limits/scopes_max").is_none() {
        let scopes_max = &mut description.limits.scopes_max;
        *scopes_max = permit.permissions().definition_limits().scopes_max.min(*scopes_max);
    }
    Ok(description)
}

/// The same answer whether a series of another caller exists or not.
fn check_may_create(permit: &Permit, name: &SeriesName) -> Result<()> {
    permit.check_series(name).map_err(|_| {
        let patterns = permit.permissions().series().patterns().unwrap_or_default();
        let allowed = patterns.iter().map(SeriesPattern::as_str).collect::<Vec<_>>().join(", ");
        let detail = format!("this caller may define only series named {allowed}, not {:?}", name.as_str());
        Problem::new(ErrorCode::FORBIDDEN, detail)
    })
}

/// The same answer whether there is no sink or pool of this name, or it is offered to other series.
fn check_offer(kind: &str, offers: &Offers, wanted: Option<&str>, series: &SeriesName) -> Result<()> {
    match wanted {
        Some(wanted) if !offers.includes(wanted, series) => {
            let wanted = query::truncate(wanted);
            let detail = format!("no {kind} {wanted:?} is offered to series {:?}", series.as_str());
            Err(Problem::new(ErrorCode::FORBIDDEN, detail))
        }
        _ => Ok(()),
    }
}

/// A key that meets the key of a series which the caller may not read is refused without naming that series.
fn to_problem(error: MachineError, permit: &Permit) -> Problem {
    let may_read = |series: &SeriesName| permit.permissions().check(Right::Read, series).is_ok();
    match &error {
        MachineError::KeysMeet { first, second, second_key, .. } if !may_read(first) => {
            let detail =
                format!("series {:?}: key {second_key} could be a key of another series", second.as_str());
            Problem::new(ErrorCode::KEYS_MEET, detail)
        }
        _ => error.into(),
    }
}

enum CreateError {
    Refused(Problem),
    Machine(MachineError),
}

impl From<MachineError> for CreateError {
    fn from(error: MachineError) -> Self {
        Self::Machine(error)
    }
}

fn check_definition(registry: &Registry, permit: &Permit, spec: &SeriesSpec) -> Result<()> {
    let is_visible = |entry: &&Arc<SeriesEntry>| permit.check_series(entry.series().name()).is_ok();
    let visible = registry.entries().filter(is_visible);
    let others = visible.filter(|entry| *entry.series().name() != spec.name).count();
    Ok(permit.permissions().check_definition(spec, others)?)
}

/// Change the limits, the rejection rules, the audit or the promise of a series
///
/// No identifier changes: rejection rules only decide which positions are skipped from now on. A new `audit` setting
/// applies to this server as soon as it has answered, and to other nodes within a second. A promise changes once no node
/// holds numbers that were granted under the old promise; a series that becomes gapless is gapless from its next number
/// on.
#[utoipa::path(patch, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    request_body = SeriesPatch,
    responses((status = 200, body = Series), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The change was refused")))]
pub(super) async fn change_series<S: Store>(
    context: Context<S>,
    permit: Permit,
    routes::Series(entry): routes::Series,
    JsonBody(patch): JsonBody<SeriesPatch, BODY_BYTES_MAX>,
) -> JsonResult<Series> {
    let name = entry.series().name();
    check_client_leases(&context, name, &patch).await?;
    let change = |spec: &SeriesSpec| {
        permit.check_valid()?;
        let description = apply_patch(&patch, &parse_description(spec)?)?;
        let spec = series::build_spec(&description, spec.name.clone())?;
        check_definition(&context.machine.registry(), &permit, &spec)?;
        Ok::<_, Problem>(spec)
    };
    context.machine.change_series(name, change, permit.actor()).await?;
    to_api_series(&*context.series(name.as_str(), &permit).await?).map(Json)
}

/// Refuses an `ordered` or `gapless` promise while clients hold leases, whose numbers would come out of order.
async fn check_client_leases<S: Store>(
    context: &Context<S>,
    name: &SeriesName,
    patch: &SeriesPatch,
) -> Result<()> {
    let needs_order = patch.promise.as_deref().is_some_and(|promise| promise != Promise::Unique.name());
    let filter = ClientLeaseFilter { series: Some(name.clone()), ..ClientLeaseFilter::default() };
    if !needs_order || context.machine.leases(filter, None, 1).await?.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "clients hold leases of series \"{name}\", whose numbers would come out of order: close these clients \
         (GET /v1/leases lists them), then change the promise"
    );
    Err(Problem::new(ErrorCode::SERIES_EXISTS, detail))
}

/// Retire a series
///
/// A retired series issues no more numbers. Its cursors are kept forever, and a series created again under its name
/// continues from them.
#[utoipa::path(delete, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    responses((status = 200, body = Retirement), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The series was not retired")))]
pub(super) async fn retire_series<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(series): Path<String>,
) -> JsonResult<Retirement> {
    let name = parse_series_name(&series)?;
    permit.check_series(&name)?;
    permit.permissions().check_all_scopes()?;
    let closed = context.machine.retire_series_if(&name, || permit.check_valid(), permit.actor()).await?;
    Ok(Json(Retirement { returned: closed.returned, gaps: closed.gaps }))
}

//! `/v1/series`: which series there are, and series made, changed and retired at run time.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use bates_api::{Amendment, Description, Retirement, Series, SeriesList};
use bates_core::{ClientLeaseFilter, Code, Entry, Made, Origin, Promise, SeriesName, SeriesSpec, Store};

use super::ask::{self, Ask};
use super::problem::{Answer, Problem};
use super::routes::{self, Context, Path, name};
use crate::series;

/// Ten thousand restricted words.
const BODY_BYTES_MAX: usize = 1024 * 1024;

fn spell_series(entry: &Entry) -> Result<Series, Problem> {
    let mut description = read(entry.spec())?;
    description.start = Some(entry.series().start().value());
    // The promise of a series of the file may have changed since.
    entry.series().promise().name().clone_into(&mut description.promise);
    let origin = match entry.origin() {
        Origin::File => "file",
        Origin::Api => "api",
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

fn read(spec: &SeriesSpec) -> Result<Description, Problem> {
    let unread = |error: serde_json::Error| {
        Problem::new(Code::BAD_SERIES, format!("its description cannot be read: {error}"))
    };
    serde_json::from_str(&spec.description).map_err(unread)
}

fn apply(amendment: &Amendment, description: &Description) -> Result<Description, Problem> {
    let unread = |error: serde_json::Error| Problem::new(Code::BAD_BODY, error.to_string());
    let mut merged = serde_json::to_value(description).map_err(unread)?;
    merge(&mut merged, serde_json::to_value(amendment).map_err(unread)?);
    serde_json::from_value(merged).map_err(unread)
}

/// RFC 7396: objects are merged, `null` removes, everything else replaces.
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

/// List the series
#[utoipa::path(get, path = "/v1/series", tag = "series", responses((status = 200, body = SeriesList)))]
pub(super) async fn all<S: Store>(context: Context<S>) -> Answer<SeriesList> {
    let registry = context.machine.registry();
    let series = registry.entries().map(|entry| spell_series(entry)).collect::<Result<_, _>>()?;
    Ok(Json(SeriesList { series }))
}

/// Describe a series
#[utoipa::path(get, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    responses((status = 200, body = Series), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn one<S: Store>(_: Context<S>, routes::Series(entry): routes::Series) -> Answer<Series> {
    spell_series(&entry).map(Json)
}

/// Make a series
///
/// Making the same series again changes nothing. A series that was retired goes on where it was; one of its
/// name with another pattern, order, start, reset or time zone is refused for ever.
#[utoipa::path(put, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    request_body = Description,
    responses((status = 201, body = Series, description = "It was made"), (status = 200, body = Series, description = "It was there"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "It was refused")))]
pub(super) async fn put<S: Store>(
    context: Context<S>,
    Path(series): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<Series>), Problem> {
    let name = name(&series)?;
    let body = ask::bytes(body, BODY_BYTES_MAX, context.body_timeout).await?;
    let made = context.machine.create(series::spec(&ask::json(&body)?, name)?).await?;
    let status = if made == Made::New { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(spell_series(&*context.series(&series).await?)?)))
}

/// Change the limits, the rejection rules, the audit or the promise of a series
///
/// No identifier moves: rules only decide which positions are skipped from now on. What this server answers after that
/// is recorded if `audit` says so; others follow within a second. A promise is changed once no node holds numbers in
/// memory that were granted under the old one; a series that becomes gapless is so from its next number on.
#[utoipa::path(patch, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    request_body = Amendment,
    responses((status = 200, body = Series), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "It was refused")))]
pub(super) async fn patch<S: Store>(
    context: Context<S>,
    routes::Series(entry): routes::Series,
    Ask(amendment): Ask<Amendment, BODY_BYTES_MAX>,
) -> Answer<Series> {
    let name = entry.series().name();
    check_clients(&context, name, &amendment).await?;
    let change = |spec: &SeriesSpec| {
        let description = apply(&amendment, &read(spec)?)?;
        Ok::<_, Problem>(series::spec(&description, spec.name.clone())?)
    };
    context.machine.amend(name, change).await?;
    spell_series(&*context.series(name.as_str()).await?).map(Json)
}

/// Numbers that clients hold in advance would come out of order.
async fn check_clients<S: Store>(
    context: &Context<S>,
    name: &SeriesName,
    amendment: &Amendment,
) -> Result<(), Problem> {
    let keeps_order = amendment.promise.as_deref().is_some_and(|promise| promise != Promise::Unique.name());
    let of = ClientLeaseFilter { series: Some(name.clone()) };
    if !keeps_order || context.machine.leases(of, None, 1).await?.is_empty() {
        return Ok(());
    }
    let told = format!(
        "clients hold numbers of series \"{name}\" in advance, which would come out of order: have them close \
         (GET /v1/leases lists them), and change its promise then"
    );
    Err(Problem::new(Code::SERIES_EXISTS, told))
}

/// Retire a series
///
/// It issues nothing more. Its cursors stay for ever, and a series made again under its name goes on from them.
#[utoipa::path(delete, path = "/v1/series/{series}", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "invoice-acme")),
    responses((status = 200, body = Retirement), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "It was refused")))]
pub(super) async fn retire<S: Store>(context: Context<S>, Path(series): Path<String>) -> Answer<Retirement> {
    let closed = context.machine.retire(&name(&series)?).await?;
    Ok(Json(Retirement { returned: closed.returned, gaps: closed.gaps }))
}

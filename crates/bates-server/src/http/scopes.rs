//! `…/scopes` and `…/peek`: what is known of scopes, without touching one.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use bates_core::{Code, ScopeKey, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::ask::Ask;
use super::problem::Problem;
use super::routes::{Context, Path};

/// Scopes on one page, unless fewer are asked for.
const PAGE: usize = 100;

/// The most that may be asked for.
const PAGE_MAX: usize = 1_000;

/// Some scopes of a series, by their keys.
#[derive(Serialize, ToSchema)]
pub(super) struct Page {
    /// The scopes.
    scopes: Vec<KnownScope>,
    /// Give this as `after` to see those behind them; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// A scope, and how far its cursor has come.
#[derive(Serialize, ToSchema)]
pub(super) struct KnownScope {
    /// The values of its parameters.
    #[schema(example = json!({"project": "PROJ", "type": "9012"}))]
    scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    /// The first position that is not granted. Some below it may still be held in memory.
    cursor: u64,
}

/// What is known of a scope.
#[derive(Serialize, ToSchema)]
pub(super) struct Peek {
    /// Whether a number of it was ever asked for.
    exists: bool,
    /// The highest position handed out; after a crash, the highest granted.
    last: Option<u64>,
    /// The position that comes next; `null` at the end.
    next: Option<u64>,
    /// How many numbers are left.
    left: u64,
    /// Whether that is an estimate, because of rejection rules.
    left_is_estimate: bool,
}

/// List the scopes of a series
#[utoipa::path(get, path = "/v1/series/{series}/scopes", tag = "series",
    params(("series" = String, Path, description = "The name of a series", example = "document"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 100 unless said, at most 1,000")),
    responses((status = 200, body = Page), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn list<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    uri: Uri,
) -> Result<Json<Page>, Problem> {
    let entry = context.series(&series).await?;
    let (mut after, mut limit) = (None, PAGE);
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            "after" => after = Some(ScopeKey::from_store(&value)),
            "limit" => match value.parse() {
                Ok(given @ 1..=PAGE_MAX) => limit = given,
                _ => return Err(Problem::new(Code::BAD_COUNT, format!("limit is 1 to {PAGE_MAX}"))),
            },
            _ => return Err(Problem::new(Code::BAD_ARGUMENTS, "the query may have after and limit")),
        }
    }
    let found = context.machine.scopes(entry.series().name().clone(), after, limit).await?;
    let after = found.last().filter(|_| found.len() == limit).map(|(key, _)| key.to_string());
    let scopes = found.iter().map(|(key, cursor)| {
        let (parameters, period) = key.parts();
        let scope = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        KnownScope { scope, period: period.map(str::to_owned), cursor: cursor.next }
    });
    Ok(Json(Page { scopes: scopes.collect(), after }))
}

/// Look at a scope without taking a number
#[utoipa::path(get, path = "/v1/series/{series}/peek", tag = "numbers",
    params(("series" = String, Path, description = "The name of a series", example = "short"),
        ("date" = Option<String>, Query, description = "The business date; further parameters name the scope")),
    responses((status = 200, body = Peek), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such scope")))]
pub(super) async fn peek<S: Store>(
    State(context): State<Context<S>>,
    Path(series): Path<String>,
    uri: Uri,
) -> Result<Json<Peek>, Problem> {
    let entry = context.series(&series).await?;
    let ask = Ask::of_query(uri.query().unwrap_or_default())?;
    let parameters = ask.parameters();
    let peek = context.machine.peek(&entry, ask.name(&parameters)).await?;
    let left_is_estimate = !entry.series().pattern().reject().is_empty();
    let bates_core::Peek { last, next, left, exists } = peek;
    Ok(Json(Peek { exists, last, next, left, left_is_estimate }))
}

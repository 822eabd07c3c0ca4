//! `/v1/gaps` and `/v1/reconcile`: which numbers nobody has, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use bates_core::{Code, Gap, GapFilter, Place, ScopeKey, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::problem::Problem;
use super::routes::{self, Context};

/// Gaps on one page, unless fewer are asked for.
const PAGE: usize = 1_000;

/// The most that may be asked for.
const PAGE_MAX: usize = 10_000;

/// Some gaps, in the order of their series, scopes and positions.
#[derive(Serialize, ToSchema)]
pub(super) struct Gaps {
    /// The gaps.
    gaps: Vec<KnownGap>,
    /// Give this as `after` to see those behind them; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// Positions of which nobody has the numbers.
#[derive(Serialize, ToSchema)]
pub(super) struct KnownGap {
    /// The series.
    series: String,
    /// The scope.
    #[schema(example = json!({"project": "PROJ", "type": "9012"}))]
    scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    /// The first position.
    first: u64,
    /// The last position.
    last: u64,
    /// Why: `outbox_dlq`, `abandoned`, `voided`, `untracked_loss`, `crash_skip`, `lease_lost`, `burned`,
    /// `floor_raised`, `fill_fenced`, `pool_invalidated` or `delivery_unknown`.
    #[schema(example = "voided")]
    reason: &'static str,
    /// Whether somebody may have the numbers all the same: their holder crashed, or forgot.
    uncertain: bool,
    /// When it was first seen.
    #[schema(format = DateTime)]
    seen: String,
}

impl KnownGap {
    fn of(gap: &Gap) -> Self {
        let (parameters, period) = gap.place.scope.parts();
        Self {
            series: gap.place.series.to_string(),
            scope: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            period: period.map(str::to_owned),
            first: gap.missing.range.from(),
            last: gap.missing.range.to() - 1,
            reason: gap.missing.reason.name(),
            uncertain: gap.missing.reason.is_uncertain(),
            seen: gap.seen.to_string(),
        }
    }
}

/// What a query asks for: what is not known is a parameter of the scope.
struct Asked {
    of: GapFilter,
    after: Option<(Place, u64)>,
    limit: usize,
}

impl Asked {
    fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Self { of: GapFilter::default(), after: None, limit: PAGE };
        let (mut parameters, mut period) = (Vec::new(), None);
        let query: Vec<_> = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).collect();
        for (name, value) in &query {
            match &**name {
                "series" => asked.of.series = Some(routes::name(value)?),
                "after" => asked.after = Some(place_of(value)?),
                "period" => period = Some(value),
                "limit" => match value.parse() {
                    Ok(given @ 1..=PAGE_MAX) => asked.limit = given,
                    _ => return Err(Problem::new(Code::BAD_COUNT, format!("limit is 1 to {PAGE_MAX}"))),
                },
                name => parameters.push((name, &**value)),
            }
        }
        if !parameters.is_empty() || period.is_some() {
            let bad = |error: bates_core::ScopeKeyError| Problem::new(Code::BAD_SCOPE, error.to_string());
            let key = ScopeKey::new(parameters, None).map_err(bad)?;
            asked.of.scope = Some(match period {
                Some(period) => ScopeKey::from_store(format!("{key} @{period}").trim_start()),
                None => key,
            });
        }
        Ok(asked)
    }
}

/// `series scope first`, as it was given.
fn place_of(text: &str) -> Result<(Place, u64), Problem> {
    let parts = || {
        let (rest, first) = text.rsplit_once('|')?;
        let (series, scope) = rest.split_once('|')?;
        let place = Place { series: series.parse().ok()?, scope: ScopeKey::from_store(scope) };
        Some((place, first.parse().ok()?))
    };
    parts().ok_or_else(|| Problem::new(Code::BAD_ARGUMENTS, "after is not the one of a page before"))
}

/// List gaps
///
/// As the last reconciliation found them. With `Accept: text/csv` as a table, which has as many rows as `limit` says and
/// no word of those behind them. `GET /api/v1/ids/gaps` is the same.
#[utoipa::path(get, path = "/v1/gaps", tag = "gaps",
    params(("series" = Option<String>, Query, description = "Only those of this series; further parameters name a scope", example = "document"),
        ("period" = Option<String>, Query, description = "The period of the scope"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 1,000 unless said, at most 10,000")),
    responses((status = 200, content((Gaps = "application/json"), (String = "text/csv")), description = "The gaps"),
        (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(super) async fn gaps<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Asked { of, after, limit } = Asked::of(&uri)?;
    let found = context.machine.gaps(of, after, limit).await?;
    let after = found
        .last()
        .filter(|_| found.len() == limit)
        .map(|gap| format!("{}|{}|{}", gap.place.series.as_str(), gap.place.scope, gap.missing.range.from()));
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepted.to_ascii_lowercase().contains("text/csv") {
        return Ok(csv(&found));
    }
    Ok(Json(Gaps { gaps: found.iter().map(KnownGap::of).collect(), after }).into_response())
}

/// No column holds a comma or a quote: names and scopes are made of other characters, or are quoted.
fn csv(gaps: &[Gap]) -> Response {
    let mut text = String::from("series,scope,first,last,count,reason,uncertain,seen\n");
    for Gap { place, missing, seen } in gaps {
        let (series, scope) = (place.series.as_str(), place.scope.as_str().replace('"', "\"\""));
        let (first, last, count) = (missing.range.from(), missing.range.to() - 1, missing.range.count());
        let (reason, uncertain) = (missing.reason, missing.reason.is_uncertain());
        // Writing to a text does not fail.
        let _ = writeln!(text, "{series},\"{scope}\",{first},{last},{count},{reason},{uncertain},{seen}");
    }
    let mut response = Body::from(text).into_response();
    let kind = HeaderValue::from_static("text/csv; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// What a reconciliation found.
#[derive(Serialize, ToSchema)]
pub(super) struct Reconciled {
    /// Scopes that were looked at.
    scopes: u64,
    /// Gaps, each a range.
    gaps: u64,
    /// Positions in them.
    missing: u64,
    /// Positions that a crashed process may have used.
    uncertain: u64,
    /// Texts among the user's documents that are no numbers of their series.
    strangers: u64,
}

/// Compare cursors with the ledger, the outbox and what is held, and write down what is missing
#[utoipa::path(post, path = "/v1/reconcile", tag = "gaps",
    params(("series" = Option<String>, Query, description = "Only this series")),
    responses((status = 200, body = Reconciled), (status = "default", body = Problem, content_type = "application/problem+json", description = "There is no such series, or the store fails")))]
pub(super) async fn reconcile<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
) -> Result<Json<Reconciled>, Problem> {
    let mut only = None;
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            "series" => only = Some(context.series(&value).await?),
            _ => return Err(Problem::new(Code::BAD_ARGUMENTS, "the query may have series")),
        }
    }
    let only = only.map(|entry| entry.series().name().clone());
    let bates_core::Reconciled { scopes, gaps, missing, uncertain, strangers } =
        context.machine.reconcile(only.as_ref()).await?;
    Ok(Json(Reconciled { scopes, gaps, missing, uncertain, strangers }))
}

//! `/v1/gaps` and `/v1/reconcile`: which numbers nobody has, and why.

use axum::Json;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use bates_api::{Gap, GapPage, Reconciliation};
use bates_core::{GapFilter, Place, ScopeKey, Store};

use super::problem::{Answer, Problem};
use super::query::{self, ListQuery};
use super::routes::Context;

/// List gaps
///
/// As the last reconciliation found them. With `Accept: text/csv` as a table, which has as many rows as `limit` says and
/// no word of those behind them. `GET /api/v1/ids/gaps` is the same.
#[utoipa::path(get, path = "/v1/gaps", tag = "gaps",
    params(("series" = Option<String>, Query, description = "Only those of this series; further parameters name a scope", example = "document"),
        ("period" = Option<String>, Query, description = "The period of the scope"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 1,000 unless said, at most 10,000")),
    responses((status = 200, content((GapPage = "application/json"), (String = "text/csv")), description = "The gaps"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(super) async fn gaps<S: Store>(
    context: Context<S>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut query = ListQuery::of(&uri, query::LARGE)?;
    let of = GapFilter { series: query.take_series()?, scope: query.take_scope()? };
    let found = context.machine.gaps(of, query.after(read_place)?, query.limit).await?;
    let after = query.next(&found, |gap| {
        format!("{}|{}|{}", gap.place.series.as_str(), gap.place.scope, gap.missing.range.from())
    });
    let gaps: Vec<Gap> = found.iter().map(spell_gap).collect();
    let csv = query::csv(&headers, Gap::CSV, &gaps, Gap::csv);
    Ok(csv.unwrap_or_else(|| Json(GapPage { gaps, after }).into_response()))
}

fn read_place(text: &str) -> Option<(Place, u64)> {
    let (rest, first) = text.rsplit_once('|')?;
    let (series, scope) = rest.split_once('|')?;
    let place = Place { series: series.parse().ok()?, scope: ScopeKey::from_store(scope) };
    Some((place, first.parse().ok()?))
}

fn spell_gap(gap: &bates_core::Gap) -> Gap {
    let (scope, period) = query::spell_scope(&gap.place.scope);
    Gap {
        series: gap.place.series.to_string(),
        scope,
        period,
        first: gap.missing.range.from(),
        last: gap.missing.range.to() - 1,
        reason: gap.missing.reason.name().to_owned(),
        uncertain: gap.missing.reason.is_uncertain(),
        seen: gap.seen.to_string(),
    }
}

/// Compare cursors with the ledger, the outbox and what is held, and write down what is missing
#[utoipa::path(post, path = "/v1/reconcile", tag = "gaps",
    params(("series" = Option<String>, Query, description = "Only this series")),
    responses((status = 200, body = Reconciliation), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series, or the store fails")))]
pub(super) async fn reconcile<S: Store>(context: Context<S>, uri: Uri) -> Answer<Reconciliation> {
    let only = context.only_series(&uri).await?;
    let bates_core::Reconciled { scopes, gaps, missing, uncertain, strangers } =
        context.machine.reconcile(only.as_ref()).await?;
    Ok(Json(Reconciliation { scopes, gaps, missing, uncertain, strangers }))
}

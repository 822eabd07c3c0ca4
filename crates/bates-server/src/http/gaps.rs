//! `/v1/gaps` and `/v1/reconcile`: which numbers are missing, and why.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use bates_api::{Gap, GapPage, Reconciliation};
use bates_core::{GapFilter, ScopeId, ScopeKey, Store};

use super::permit::Permit;
use super::problem::{JsonResult, Result};
use super::query::{self, ListQuery};
use super::routes::Context;

/// List gaps
///
/// Lists the gaps that the last reconciliation found; `reconciled_at` says when it began. Query parameters that the list
/// does not have name a scope, or some of its parameters. With `Accept: text/csv` the response is a table with at most `limit`
/// rows, which does not say whether there are more, and the header `Bates-Reconciled-At` has the time. `GET /api/v1/ids/gaps` is an alias.
#[utoipa::path(get, path = "/v1/gaps", tag = "gaps",
    params(("series" = Option<String>, Query, description = "Only gaps of this series. Further query parameters name a scope", example = "document"),
        ("period" = Option<String>, Query, description = "The period of the scope"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 10000, description = "The maximum number of gaps: 1 to 10,000, by default 1,000")),
    responses((status = 200, content((GapPage = "application/json"), (String = "text/csv")), description = "The gaps"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(super) async fn list_gaps<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let mut query = ListQuery::parse(&uri, query::LARGE_PAGE)?;
    let own = ["series", "period", "after", "limit"];
    let (series, scope) = query.take_listed_scopes(&context.machine, &permit, &own).await?;
    // Read before the gaps, which may be newer then, and never older.
    let reconciled_at = context.machine.reconciled_at(permit.permissions(), series.as_ref()).await?;
    let reconciled_at = reconciled_at.map(|at| at.to_string());
    let filter = GapFilter { series, scope, among: permit.permissions().series().clone() };
    let fetch = |after, limit| context.machine.gaps(filter.clone(), after, limit);
    let after_of = |gap: &bates_core::Gap| (gap.scope_id.clone(), gap.missing.range.from());
    let after = query.after(parse_after)?;
    let gaps = permit.page(query.limit, after, fetch, after_of, |gap| &gap.scope_id.scope).await?;
    let after = query.next_after(&gaps, |gap| {
        format!("{}|{}|{}", gap.scope_id.series.as_str(), gap.scope_id.scope, gap.missing.range.from())
    });
    let gaps: Vec<Gap> = gaps.iter().map(|gap| to_api_gap(&context, &permit, gap)).collect();
    let Some(mut csv) = query::csv_response(&headers, Gap::CSV_HEADER, &gaps, Gap::csv_row) else {
        return Ok(Json(GapPage { gaps, after, reconciled_at }).into_response());
    };
    let time = reconciled_at.and_then(|at| at.try_into().ok());
    csv.headers_mut().insert(RECONCILED_AT, time.unwrap_or(HeaderValue::from_static("never")));
    Ok(csv)
}

fn parse_after(text: &str) -> Option<(ScopeId, u64)> {
    let (rest, first) = text.rsplit_once('|')?;
    let (series, scope) = rest.split_once('|')?;
    let scope_id = ScopeId { series: series.parse().ok()?, scope: ScopeKey::from_store(scope) };
    Some((scope_id, first.parse().ok()?))
}

/// A table has no place for `reconciled_at`.
const RECONCILED_AT: HeaderName = HeaderName::from_static("bates-reconciled-at");

fn to_api_gap<S: Store>(context: &Context<S>, permit: &Permit, gap: &bates_core::Gap) -> Gap {
    let (scope, period) = query::to_api_scope(&gap.scope_id.scope);
    // Beside its position, a number of a shuffled series would tell the order of the numbers to come.
    let shows_numbers = context.shows_positions(permit, &gap.scope_id.series);
    let number = |position| context.machine.number_at(&gap.scope_id, position).filter(|_| shows_numbers);
    Gap {
        series: gap.scope_id.series.to_string(),
        scope,
        period,
        first: gap.missing.range.from(),
        last: gap.missing.range.to() - 1,
        first_number: number(gap.missing.range.from()),
        last_number: number(gap.missing.range.to() - 1),
        reason: gap.missing.reason.name().to_owned(),
        uncertain: gap.missing.reason.is_uncertain(),
        seen: gap.first_seen.to_string(),
    }
}

/// Find gaps
///
/// Compares the cursors with the ledger of documents, the outbox and the ranges that are still held, and records every
/// missing position as a gap with its reason.
#[utoipa::path(post, path = "/v1/reconcile", tag = "gaps",
    params(("series" = Option<String>, Query, description = "Reconcile only this series")),
    responses((status = 200, body = Reconciliation), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series, or the store failed")))]
pub(super) async fn reconcile<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<Reconciliation> {
    permit.permissions().check_all_scopes()?;
    // `None` stands for all series.
    let series = match context.only_series(&uri, &permit).await? {
        Some(series) => vec![Some(series)],
        None if permit.permissions().series().patterns().is_none() => vec![None],
        None => {
            let visible = context.visible_series(&permit);
            visible.iter().map(|entry| Some(entry.series().name().clone())).collect()
        }
    };
    let mut sum = Reconciliation::default();
    for series in series {
        let report = context.machine.reconcile(series.as_ref()).await?;
        sum.scopes += report.scopes;
        sum.gaps += report.gaps;
        sum.missing += report.missing;
        sum.uncertain += report.uncertain;
        sum.strangers += report.unreadable;
    }
    Ok(Json(sum))
}

//! Leases: numbers that a client takes in advance and issues from its own memory.

use axum::Json;
use axum::body::Body;
use axum::http::{Extensions, Uri};
use bates_api as api;
use bates_api::{Day, HeldLease, LeasePage, LeasedNumber, ReturnOutcome, ReturnRequest};
use bates_core::{
    ClientLease, ClientLeaseFilter, ErrorCode, LeaseContent, LeaseGrant, LeaseRequest, PositionRange,
    SeriesEntry, Store,
};
use bates_pattern::Reset;
use uuid::Uuid;

use super::meter;
use super::permit::Permit;
use super::problem::{JsonResult, Problem, Result};
use super::query::{self, ListQuery, PageSize, truncate};
use super::request::{self, JsonBody, Unkeyed};
use super::routes::{Context, Path, Series};

/// Positions in one lease; a crash of the client loses at most this many.
const COUNT_MAX: u64 = 1_000_000;
/// Numbers listed in one lease; the response then has some megabytes.
const NUMBERS_MAX: u64 = 100_000;
const USED_MAX: usize = 1_000;
const UNUSED_MAX: usize = 10_000;
/// Enough for `USED_MAX` leases.
const LEASE_BYTES_MAX: usize = 128 * 1024;
const PAGE: PageSize = PageSize { default: 1_000, max: 1_000 };
/// Enough for `UNUSED_MAX` ranges.
const RETURN_BYTES_MAX: usize = 1024 * 1024;

/// Take numbers in advance
///
/// For clients that issue numbers from their own memory; only for series with the promise `unique`. The lease has ranges
/// of positions if every position is a number that the client can render, and otherwise the numbers themselves. Leased
/// numbers are used or lost: returned numbers become gaps and are never issued to another client. After a day without a
/// report about a lease, its client counts as crashed. A request with the header `Idempotency-Key` is refused with
/// `not_repeatable`.
#[utoipa::path(post, path = "/v1/series/{series}/lease", tag = "numbers",
    params(("series" = String, Path, description = "The name of the series", example = "document")),
    request_body = api::LeaseRequest,
    responses((status = 200, description = "The lease, with as many numbers as requested, or fewer if the scope ends", body = api::LeaseGrant),
        (status = "default", description = "No number was leased", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn take_lease<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    _: Unkeyed,
    extensions: Extensions,
    JsonBody(api::LeaseRequest { scope, count, date, numbers, used }): JsonBody<
        api::LeaseRequest,
        LEASE_BYTES_MAX,
    >,
) -> JsonResult<api::LeaseGrant> {
    request::check_count(count, COUNT_MAX)?;
    check_length(used.len(), USED_MAX, "used leases")?;
    // A text that is not an id cannot name an open lease.
    let used = used.iter().filter_map(|id| id.parse().ok()).collect();
    let owner = permit.caller.lease_owner();
    let request = LeaseRequest { count, numbers_max: NUMBERS_MAX, as_numbers: numbers, used, owner };
    let pairs = scope.pairs();
    let params = permit.scope(&pairs, date.map(Day::date))?;
    if numbers || entry.leases_as_numbers(params.date) {
        let count = count.min(NUMBERS_MAX);
        meter::reserve_numbers(&extensions, &context.machine, &entry, params, count)?;
    }
    let take = context.machine.lease(&entry, params, request, permit.actor());
    let grant = permit.take(&context.machine, count, take, |_| count).await?;
    Ok(Json(to_api_grant(&entry, grant)))
}

/// End a lease
///
/// The unused positions become gaps; all other positions count as used. If a range does not lie within the lease, the
/// request is refused and the lease stays open.
#[utoipa::path(post, path = "/v1/leases/{lease}/return", tag = "numbers",
    params(("lease" = String, Path, description = "The `lease` of the grant")),
    request_body = ReturnRequest,
    responses((status = 200, body = ReturnOutcome),
        (status = "default", description = "Nothing changed", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn return_lease<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(lease): Path<String>,
    body: Body,
) -> JsonResult<ReturnOutcome> {
    let unknown =
        |_| Problem::new(ErrorCode::UNKNOWN_LEASE, format!("there is no lease {:?}", truncate(&lease)));
    let id: Uuid = lease.parse().map_err(unknown)?;
    let body = request::read_body(body, RETURN_BYTES_MAX, context.body_timeout).await?;
    let ReturnRequest { unused } = request::parse_json(&body)?;
    check_length(unused.len(), UNUSED_MAX, "unused ranges")?;
    let to_range = |range: api::PositionRange| PositionRange::new(range.first, range.last.checked_add(1)?);
    let unused: Option<Vec<PositionRange>> = unused.into_iter().map(to_range).collect();
    let unused = unused.ok_or_else(|| Problem::new(ErrorCode::BAD_BODY, "a range ends before it begins"))?;
    Ok(Json(ReturnOutcome {
        gaps: context.machine.end_lease(id, unused, permit.caller.lease_owner()).await?,
    }))
}

/// List the leases that clients hold
#[utoipa::path(get, path = "/v1/leases", tag = "numbers",
    params(("series" = Option<String>, Query, description = "Only leases of this series", example = "document"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page")),
    responses((status = 200, body = LeasePage),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(super) async fn list_leases<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<LeasePage> {
    let mut query = ListQuery::parse(&uri, PAGE)?;
    let series = query.take_listed_series(&context.machine, &permit).await?;
    let filter = ClientLeaseFilter { series, among: permit.permissions().series().clone() };
    query.check_rest(&["series", "after"])?;
    let fetch = |after, limit| context.machine.leases(filter.clone(), after, limit);
    let after = query.after(|after| after.parse().ok())?;
    let leases =
        permit.page(query.limit, after, fetch, |lease| lease.id, |lease| &lease.scope_id.scope).await?;
    let after = query.next_after(&leases, |lease| lease.id.to_string());
    Ok(Json(LeasePage { leases: leases.into_iter().map(to_api_lease).collect(), after }))
}

fn check_length(length: usize, length_max: usize, what: &str) -> Result<()> {
    let detail = || format!("the request has {length} {what}; the maximum is {length_max}");
    if length <= length_max { Ok(()) } else { Err(Problem::new(ErrorCode::BAD_BODY, detail())) }
}

fn to_api_ranges(ranges: Vec<PositionRange>) -> Vec<api::PositionRange> {
    ranges.into_iter().map(|range| api::PositionRange { first: range.from(), last: range.to() - 1 }).collect()
}

fn to_api_lease(ClientLease { id, scope_id, ranges, caller, at }: ClientLease) -> HeldLease {
    let (scope, period) = query::to_api_scope(&scope_id.scope);
    HeldLease {
        lease: id.to_string(),
        series: scope_id.series.to_string(),
        scope,
        period,
        ranges: to_api_ranges(ranges),
        who: caller.into(),
        since: at.to_string(),
    }
}

fn to_api_grant(entry: &SeriesEntry, LeaseGrant { id, content, valid_for }: LeaseGrant) -> api::LeaseGrant {
    let pattern = entry.series().pattern();
    let good_for_ms = valid_for.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let grant = api::LeaseGrant { lease: id.to_string(), good_for_ms, ..api::LeaseGrant::default() };
    match content {
        LeaseContent::Ranges(ranges) => api::LeaseGrant {
            ranges: Some(to_api_ranges(ranges)),
            template: Some(pattern.template().to_owned()),
            reset: (pattern.reset() != Reset::Never).then(|| pattern.reset().to_string()),
            construction: Some(pattern.construction().number()),
            ..grant
        },
        LeaseContent::Numbers(numbers, ranges) => {
            let numbers =
                numbers.iter().map(|(at, id)| LeasedNumber { position: at.value(), id: id.to_owned() });
            api::LeaseGrant { numbers: Some(numbers.collect()), ranges: Some(to_api_ranges(ranges)), ..grant }
        }
    }
}

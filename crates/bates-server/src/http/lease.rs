//! Numbers in advance, which clients hand out from their own memory: leased, returned, and who holds some.

use axum::Json;
use axum::body::Body;
use axum::extract::Extension;
use axum::http::Uri;
use bates_api::{
    HeldLease, LeaseGrant, LeasePage, LeaseRequest, LeasedNumber, PositionRange, ReturnOutcome, ReturnRequest,
};
use bates_core::{Advance, By, ClientLease, ClientLeaseFilter, Code, Entry, Lease, LeaseAsk, Leased, Store};
use bates_pattern::Reset;
use uuid::Uuid;

use super::ask::{self, Ask};
use super::problem::{Answer, Problem};
use super::query::{self, ListQuery, PageSize, cut};
use super::routes::{Context, Path, Series};
use crate::Caller;

/// Positions in one lease; a crash of the client loses at most this many.
const COUNT_MAX: u64 = 1_000_000;
/// Numbers in one lease: written out, some megabytes.
const NUMBERS_MAX: u64 = 100_000;
const USED_MAX: usize = 1_000;
const UNUSED_MAX: usize = 10_000;
/// With `USED_MAX` leases.
const ASK_BYTES_MAX: usize = 128 * 1024;
const PAGE: PageSize = PageSize { default: 1_000, max: 1_000 };
/// With `UNUSED_MAX` ranges.
const RETURN_BYTES_MAX: usize = 1024 * 1024;

/// Take numbers in advance
///
/// For clients that hand numbers out from their own memory, of `unique` series only. Where every position is a number and
/// the client can render it, ranges of positions are given; otherwise the numbers. What is given is used or lost: what is
/// returned is a gap and comes to nobody else. A lease that nothing was said of for a day counts as held by a client that
/// crashed.
#[utoipa::path(post, path = "/v1/series/{series}/lease", tag = "numbers",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body = LeaseRequest,
    responses((status = 200, description = "As many as were asked for; fewer where the scope ends", body = LeaseGrant),
        (status = "default", description = "Nothing was given", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn lease<S: Store>(
    context: Context<S>,
    Extension(caller): Extension<Caller>,
    Series(entry): Series,
    Ask(LeaseRequest { scope, count, date, numbers, used }): Ask<LeaseRequest, ASK_BYTES_MAX>,
) -> Answer<LeaseGrant> {
    ask::check_count(count, COUNT_MAX)?;
    check_length(used.len(), USED_MAX, "leases are used")?;
    // A text that is no id names no open lease.
    let used = used.iter().filter_map(|id| id.parse().ok()).collect();
    let parameters: Vec<_> = scope.iter().collect();
    let ask = LeaseAsk { count, numbers_max: NUMBERS_MAX, as_numbers: numbers, used };
    let by = By::http(caller.who());
    let leased = context.machine.lease(&entry, ask::name(&parameters, date), ask, by).await?;
    Ok(Json(spell_grant(&entry, leased)))
}

/// End a lease
///
/// What was not used of it is a gap from now on; all else was used. A range that is not wholly within the lease is refused,
/// and the lease stays open.
#[utoipa::path(post, path = "/v1/leases/{lease}/return", tag = "numbers",
    params(("lease" = String, Path, description = "The `lease` that was answered")),
    request_body = ReturnRequest,
    responses((status = 200, body = ReturnOutcome),
        (status = "default", description = "Nothing was written", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn give_back<S: Store>(
    context: Context<S>,
    Path(lease): Path<String>,
    body: Body,
) -> Answer<ReturnOutcome> {
    let unknown = |_| Problem::new(Code::UNKNOWN_LEASE, format!("there is no lease {:?}", cut(&lease)));
    let id: Uuid = lease.parse().map_err(unknown)?;
    let body = ask::bytes(body, RETURN_BYTES_MAX, context.body_timeout).await?;
    let ReturnRequest { unused } = ask::json(&body)?;
    check_length(unused.len(), UNUSED_MAX, "ranges are unused")?;
    let positions = |range: PositionRange| Lease::new(range.first, range.last.checked_add(1)?);
    let unused: Option<Vec<Lease>> = unused.into_iter().map(positions).collect();
    let unused = unused.ok_or_else(|| Problem::new(Code::BAD_BODY, "a range ends before it begins"))?;
    Ok(Json(ReturnOutcome { gaps: context.machine.end_lease(id, unused).await? }))
}

/// List what clients hold in advance
#[utoipa::path(get, path = "/v1/leases", tag = "numbers",
    params(("series" = Option<String>, Query, description = "Only those of this series", example = "document"),
        ("after" = Option<String>, Query, description = "The `after` of the page before")),
    responses((status = 200, body = LeasePage),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(super) async fn held<S: Store>(context: Context<S>, uri: Uri) -> Answer<LeasePage> {
    let mut query = ListQuery::of(&uri, PAGE)?;
    let of = ClientLeaseFilter { series: query.take_series()? };
    query.check_rest(|name| format!("there is no parameter {:?}", cut(name)))?;
    let found = context.machine.leases(of, query.after(|after| after.parse().ok())?, query.limit).await?;
    let after = query.next(&found, |lease| lease.id.to_string());
    Ok(Json(LeasePage { leases: found.into_iter().map(spell_lease).collect(), after }))
}

fn check_length(length: usize, length_max: usize, what: &str) -> Result<(), Problem> {
    let told = || format!("{length} {what}; one request may name {length_max}");
    if length <= length_max { Ok(()) } else { Err(Problem::new(Code::BAD_BODY, told())) }
}

fn spell_ranges(leases: Vec<Lease>) -> Vec<PositionRange> {
    leases.into_iter().map(|lease| PositionRange { first: lease.from(), last: lease.to() - 1 }).collect()
}

fn spell_lease(ClientLease { id, place, ranges, who, at }: ClientLease) -> HeldLease {
    let (scope, period) = query::spell_scope(&place.scope);
    HeldLease {
        lease: id.to_string(),
        series: place.series.to_string(),
        scope,
        period,
        ranges: spell_ranges(ranges),
        who: who.into(),
        since: at.to_string(),
    }
}

fn spell_grant(entry: &Entry, Leased { id, what, good_for }: Leased) -> LeaseGrant {
    let pattern = entry.series().pattern();
    let good_for_ms = good_for.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let grant = LeaseGrant { lease: id.to_string(), good_for_ms, ..LeaseGrant::default() };
    match what {
        Advance::Ranges(ranges) => LeaseGrant {
            ranges: Some(spell_ranges(ranges)),
            template: Some(pattern.template().to_owned()),
            reset: (pattern.reset() != Reset::Never).then(|| pattern.reset().to_string()),
            construction: Some(pattern.construction().number()),
            ..grant
        },
        Advance::Numbers(numbers, ranges) => {
            let numbers =
                numbers.iter().map(|(at, id)| LeasedNumber { position: at.value(), id: id.to_owned() });
            LeaseGrant { numbers: Some(numbers.collect()), ranges: Some(spell_ranges(ranges)), ..grant }
        }
    }
}

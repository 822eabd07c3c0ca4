//! `/v1/audit`: which caller took which numbers, for series with an audit.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use bates_api::{AuditEntry, AuditPage, Day};
use bates_core::{AuditFilter, AuditRecord, SeriesEntry, Store};
use bates_pattern::Date;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::permit::Permit;
use super::problem::Result;
use super::query::{self, ListQuery, bad_value, parse_printable};
use super::routes::Context;

/// Every query parameter without a meaning of its own is a parameter of the scope.
async fn parse_filter<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    query: &mut ListQuery,
) -> Result<AuditFilter> {
    let id = query.take("id", |id| Ok(id.to_owned()))?;
    let mut filter = AuditFilter {
        among: permit.permissions().series().clone(),
        caller: query.take("who", |who| parse_printable("who", who))?.map(Into::into),
        since: query.take("since", |since| parse_time("since", since))?,
        until: query.take("until", |until| parse_time("until", until))?,
        ..AuditFilter::default()
    };
    let own = ["series", "period", "id", "who", "since", "until", "after", "limit"];
    (filter.series, filter.scope) = query.take_listed_scopes(&context.machine, permit, &own).await?;
    if let Some(id) = id {
        restrict_to_id(context, permit, &mut filter, &id).await?;
    }
    Ok(filter)
}

async fn restrict_to_id<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    filter: &mut AuditFilter,
    id: &str,
) -> Result<()> {
    let entry = match &filter.series {
        Some(series) => context.series(series.as_str(), permit).await?,
        None => find_only_series(context, permit, id)?,
    };
    let name = entry.series().name();
    let no_match = || bad_value("id", id, &format!("is not a number of series {:?}", name.as_str()));
    let (scope, position) = entry.locate(id).ok_or_else(no_match)?;
    if let (Some(asked), Some(scope)) = (&filter.scope, &scope)
        && !asked.matches(scope)
    {
        return Err(bad_value("id", id, "belongs to another scope than the one in the query"));
    }
    filter.scope = scope.map(Into::into).or_else(|| filter.scope.take());
    (filter.series, filter.position) = (Some(name.clone()), Some(position));
    Ok(())
}

/// The series that could have issued an identifier; more than one is an error.
fn find_only_series<S: Store>(context: &Context<S>, permit: &Permit, id: &str) -> Result<Arc<SeriesEntry>> {
    let mut candidates = context.visible_series(permit);
    candidates.retain(|entry| entry.locate(id).is_some());
    match (candidates.pop(), candidates.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (None, _) => Err(bad_value("id", id, "is not a number of any series")),
        (Some(_), false) => Err(bad_value("id", id, "matches several series: add the parameter series")),
    }
}

/// No entry is older, and every store can hold this time.
const OLDEST: Timestamp = Timestamp::UNIX_EPOCH;

/// Parses a time, or a day, which stands for its midnight in UTC. A time before the oldest entry stands for that.
pub(super) fn parse_time(field: &str, text: &str) -> Result<Timestamp> {
    let day = || text.parse().ok().map(Day::date);
    let midnight = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|midnight| midnight.timestamp());
    // A year has four digits; the parser also reads signed years of six.
    let has_sign = text.starts_with(['-', '+']);
    let time = day().map_or_else(|| text.parse().ok(), midnight).filter(|_| !has_sign);
    let invalid = "is not a valid time: expected 2026-12-31T23:59:59Z or 2026-12-31";
    time.map(|time| time.max(OLDEST)).ok_or_else(|| bad_value(field, text, invalid))
}

pub(super) fn parse_after(text: &str) -> Option<(Timestamp, Uuid)> {
    let (micros, id) = text.split_once('|')?;
    let at = Timestamp::from_microsecond(micros.parse().ok()?).ok().filter(|at| *at >= OLDEST)?;
    Some((at, id.parse().ok()?))
}

/// List who took which numbers
///
/// Lists the audit entries of series with an audit, oldest first. `id` returns the entry that covers a number. Only callers
/// with the right `operate` see positions of a shuffled series. With `Accept: text/csv` the response is a table with at most
/// `limit` rows, which does not say whether there are more.
#[utoipa::path(get, path = "/v1/audit", tag = "audit",
    params(("series" = Option<String>, Query, description = "Only entries of this series. Further query parameters name a scope", example = "document"),
        ("period" = Option<String>, Query, description = "The period of the scope"),
        ("id" = Option<String>, Query, description = "Only the entry that covers this number", example = "PROJ-9012-1001"),
        ("who" = Option<String>, Query, description = "Only entries of this caller: the name of a token, an address, or `pool` and the key of a list", example = "registry"),
        ("since" = Option<String>, Query, description = "Only entries from this time on; a day means its midnight in UTC", example = "2026-12-31T00:00:00Z"),
        ("until" = Option<String>, Query, description = "Only entries before this time; a day means its midnight in UTC"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 10000, description = "The maximum number of entries: 1 to 10,000, by default 1,000")),
    responses((status = 200, content((AuditPage = "application/json"), (String = "text/csv")), description = "The entries"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(super) async fn list_audit_entries<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response> {
    let mut query = ListQuery::parse(&uri, query::LARGE_PAGE)?;
    let after = query.after(parse_after)?;
    let filter = parse_filter(&context, &permit, &mut query).await?;
    let fetch = |after, limit| context.machine.records(filter.clone(), after, limit);
    let after_of = |last: &AuditRecord| (last.stamp.at, last.id);
    let records = permit.page(query.limit, after, fetch, after_of, |record| &record.scope_id.scope).await?;
    let after = query.next_after(&records, |last| format!("{}|{}", last.stamp.at.as_microsecond(), last.id));
    let describe = |record: &AuditRecord| {
        let shows_positions = context.shows_positions(&permit, &record.scope_id.series);
        to_api_entry(record, shows_positions)
    };
    let entries: Vec<AuditEntry> = records.iter().map(describe).collect();
    let csv = query::csv_response(&headers, AuditEntry::CSV_HEADER, &entries, AuditEntry::csv_row);
    Ok(csv.unwrap_or_else(|| Json(AuditPage { entries, after }).into_response()))
}

fn to_api_entry(record: &AuditRecord, shows_positions: bool) -> AuditEntry {
    let (scope, period) = query::to_api_scope(&record.scope_id.scope);
    AuditEntry {
        series: record.scope_id.series.to_string(),
        scope,
        period,
        from: shows_positions.then(|| record.range.from()),
        to: shows_positions.then(|| record.range.to()),
        first: record.first.to_string(),
        last: record.last.to_string(),
        count: record.count,
        who: record.stamp.caller.to_string(),
        how: record.stamp.channel.name().to_owned(),
        at: record.stamp.at.to_string(),
    }
}

//! `/v1/audit`: who took which numbers, how and when, of the series that are audited.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use bates_api::{AuditEntry, AuditPage, Day};
use bates_core::{Code, Entry, Record, RecordFilter, Store};
use bates_pattern::Date;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::problem::Problem;
use super::query::{self, ListQuery, printable, wrong};
use super::routes::Context;

/// Every other name in the query is a parameter of the scope.
async fn filter<S: Store>(context: &Context<S>, query: &mut ListQuery) -> Result<RecordFilter, Problem> {
    let id = query.take("id", |id| Ok(id.to_owned()))?;
    let mut of = RecordFilter {
        series: query.take_series()?,
        who: query.take("who", |who| printable("who", who))?.map(Into::into),
        since: query.take("since", |since| moment("since", since))?,
        until: query.take("until", |until| moment("until", until))?,
        scope: query.take_scope()?,
        ..RecordFilter::default()
    };
    check_scope(context, &of)?;
    if let Some(id) = id {
        narrow(context, &mut of, &id).await?;
    }
    Ok(of)
}

/// Unknown parameters are an error, not an empty scope.
fn check_scope<S: Store>(context: &Context<S>, of: &RecordFilter) -> Result<(), Problem> {
    let named = of.series.as_ref().and_then(|series| context.machine.named(series.as_str()));
    let (Some(entry), Some(scope)) = (named, &of.scope) else { return Ok(()) };
    let given: Vec<&str> = scope.parts().0.map(|(name, _)| name).collect();
    let expected: Vec<&str> = entry.parameters().collect();
    if given == expected {
        return Ok(());
    }
    let told = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let (given, expected) = (told(&given), told(&expected));
    let detail = format!("the scope has the parameters {given}; it needs exactly {expected}");
    Err(Problem::new(Code::BAD_SCOPE, detail))
}

async fn narrow<S: Store>(context: &Context<S>, of: &mut RecordFilter, id: &str) -> Result<(), Problem> {
    let entry = match &of.series {
        Some(series) => context.series(series.as_str()).await?,
        None => only(context, id)?,
    };
    let name = entry.series().name();
    let stranger = || wrong("id", id, &format!("is no number of series {:?}", name.as_str()));
    let (scope, position) = entry.locate(id).ok_or_else(stranger)?;
    if of.scope.is_some() && scope.is_some() && of.scope != scope {
        return Err(wrong("id", id, "is of another scope than the one that is named"));
    }
    of.scope = of.scope.take().or(scope);
    (of.series, of.position) = (Some(name.clone()), Some(position));
    Ok(())
}

/// The only series that an identifier could be of.
fn only<S: Store>(context: &Context<S>, id: &str) -> Result<Arc<Entry>, Problem> {
    let registry = context.machine.registry();
    let mut could: Vec<_> = registry.entries().filter(|entry| entry.locate(id).is_some()).collect();
    match (could.pop(), could.is_empty()) {
        (Some(entry), true) => Ok(entry.clone()),
        (None, _) => Err(wrong("id", id, "is no number of any series")),
        (Some(_), false) => Err(wrong("id", id, "could be of several series: name one as series")),
    }
}

/// Whether every store can hold it.
fn is_kept(moment: &Timestamp) -> bool {
    moment.as_second() >= 0
}

/// A moment, or a day, which begins at midnight in UTC.
fn moment(field: &str, text: &str) -> Result<Timestamp, Problem> {
    let day = || text.parse().ok().map(Day::date);
    let begins = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|begin| begin.timestamp());
    let moment = day().map_or_else(|| text.parse().ok(), begins).filter(is_kept);
    moment.ok_or_else(|| wrong(field, text, "is no time: expected 2026-12-31T23:59:59Z or 2026-12-31"))
}

fn read_after(text: &str) -> Option<(Timestamp, Uuid)> {
    let (micros, id) = text.split_once('|')?;
    let at = Timestamp::from_microsecond(micros.parse().ok()?).ok().filter(is_kept)?;
    Some((at, id.parse().ok()?))
}

/// See who took which numbers
///
/// Of the series that are audited, the oldest first. `id` gives the entry that covers a number. With `Accept: text/csv`
/// as a table, which has as many rows as `limit` says and no word of those behind them.
#[utoipa::path(get, path = "/v1/audit", tag = "audit",
    params(("series" = Option<String>, Query, description = "Only what was taken of this series; further parameters name a scope", example = "document"),
        ("period" = Option<String>, Query, description = "The period of the scope"),
        ("id" = Option<String>, Query, description = "Only the entry that covers this number", example = "PROJ-9012-1001"),
        ("who" = Option<String>, Query, description = "Only what was taken by a token, an address, or `pool` and the key of a list", example = "registry"),
        ("since" = Option<String>, Query, description = "Only from this moment on, or from the beginning of this day", example = "2026-12-31T00:00:00Z"),
        ("until" = Option<String>, Query, description = "Only before this moment, or before the beginning of this day"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 1,000 unless said, at most 10,000")),
    responses((status = 200, content((AuditPage = "application/json"), (String = "text/csv")), description = "The entries"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(super) async fn audit<S: Store>(
    context: Context<S>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut query = ListQuery::of(&uri, query::LARGE)?;
    let after = query.after(read_after)?;
    let found = context.machine.records(filter(&context, &mut query).await?, after, query.limit).await?;
    let after = query.next(&found, |record| format!("{}|{}", record.taking.at.as_microsecond(), record.id));
    let entries: Vec<AuditEntry> = found.iter().map(spell_entry).collect();
    let csv = query::csv(&headers, AuditEntry::CSV, &entries, AuditEntry::csv);
    Ok(csv.unwrap_or_else(|| Json(AuditPage { entries, after }).into_response()))
}

fn spell_entry(record: &Record) -> AuditEntry {
    let (scope, period) = query::spell_scope(&record.place.scope);
    AuditEntry {
        series: record.place.series.to_string(),
        scope,
        period,
        from: record.range.from(),
        to: record.range.to(),
        first: record.first.to_string(),
        last: record.last.to_string(),
        count: record.count,
        who: record.taking.who.to_string(),
        how: record.taking.how.name().to_owned(),
        at: record.taking.at.to_string(),
    }
}

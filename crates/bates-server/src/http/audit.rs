//! `/v1/audit`: who took which numbers, how and when, of the series that are audited.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use bates_core::{Code, Entry, Record, RecordFilter, ScopeKey, Store};
use bates_pattern::Date;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::problem::Problem;
use super::routes::{self, Context};

/// Entries on one page, unless fewer are asked for.
const PAGE: usize = 1_000;

/// The most that may be asked for.
const PAGE_MAX: usize = 10_000;

/// Some entries, the oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct AuditPage {
    /// The entries.
    entries: Vec<AuditEntry>,
    /// Give this as `after` to see those behind them; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// Numbers that somebody took at once.
#[derive(Serialize, ToSchema)]
pub(super) struct AuditEntry {
    /// The series.
    series: String,
    /// The scope.
    #[schema(example = json!({"project": "PROJ", "type": "9012"}))]
    scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    /// The first position.
    from: u64,
    /// The first position past them.
    to: u64,
    /// The first number.
    #[schema(example = "PROJ-9012-1001")]
    first: String,
    /// The last number.
    #[schema(example = "PROJ-9012-2000")]
    last: String,
    /// How many numbers: fewer than positions where rules reject some.
    count: u64,
    /// The name of a token, the address of a client that has none, or `pool` and the key of a list.
    #[schema(example = "registry")]
    who: String,
    /// `http`, `resp`, `pool`, `document`, `reservation` or `library`.
    #[schema(example = "http")]
    how: &'static str,
    /// When, by the clock of the server that gave them.
    #[schema(format = DateTime)]
    at: String,
}

impl AuditEntry {
    fn of(record: &Record) -> Self {
        let (parameters, period) = record.place.scope.parts();
        Self {
            series: record.place.series.to_string(),
            scope: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            period: period.map(str::to_owned),
            from: record.range.from(),
            to: record.range.to(),
            first: record.first.to_string(),
            last: record.last.to_string(),
            count: record.count,
            who: record.taking.who.to_string(),
            how: record.taking.how.name(),
            at: record.taking.at.to_string(),
        }
    }
}

/// What a query asks for: what is not known is a parameter of the scope.
struct Asked {
    of: RecordFilter,
    id: Option<String>,
    after: Option<(Timestamp, Uuid)>,
    limit: usize,
}

impl Asked {
    fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Self { of: RecordFilter::default(), id: None, after: None, limit: PAGE };
        let (mut parameters, mut period) = (Vec::new(), None);
        let query: Vec<_> = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).collect();
        for (name, value) in &query {
            match &**name {
                "series" => asked.of.series = Some(routes::name(value)?),
                "period" => period = Some(printable("period", value)?),
                "id" => asked.id = Some(value.to_string()),
                "who" => asked.of.who = Some(printable("who", value)?.into()),
                "since" => asked.of.since = Some(moment("since", value)?),
                "until" => asked.of.until = Some(moment("until", value)?),
                "after" => asked.after = Some(behind(value)?),
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

    /// A parameter that the series has not is a mistake, and not a scope of which there is nothing.
    fn check_scope<S: Store>(&self, context: &Context<S>) -> Result<(), Problem> {
        let named = self.of.series.as_ref().and_then(|series| context.machine.named(series.as_str()));
        let (Some(entry), Some(scope)) = (named, &self.of.scope) else { return Ok(()) };
        let (given, expected): (Vec<&str>, Vec<&str>) =
            (scope.parts().0.map(|(name, _)| name).collect(), entry.parameters().collect());
        if given == expected {
            return Ok(());
        }
        let told = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let problem =
            format!("the scope has the parameters {}; it needs exactly {}", told(&given), told(&expected));
        Err(Problem::new(Code::BAD_SCOPE, problem))
    }

    /// Narrows the question to the number that was asked for.
    async fn narrow<S: Store>(&mut self, context: &Context<S>) -> Result<(), Problem> {
        self.check_scope(context)?;
        let Some(id) = self.id.take() else { return Ok(()) };
        let entry = match &self.of.series {
            Some(series) => context.series(series.as_str()).await?,
            None => only(context, &id)?,
        };
        let name = entry.series().name().clone();
        let (scope, position) = entry
            .locate(&id)
            .ok_or_else(|| wrong("id", &id, &format!("is no number of series {:?}", name.as_str())))?;
        match (&self.of.scope, scope) {
            (Some(given), Some(shown)) if *given != shown => {
                return Err(wrong("id", &id, "is of another scope than the one that is named"));
            }
            (None, Some(shown)) => self.of.scope = Some(shown),
            _ => {}
        }
        (self.of.series, self.of.position) = (Some(name), Some(position));
        Ok(())
    }
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

fn wrong(field: &str, value: &str, problem: &str) -> Problem {
    let value: String = value.chars().take(64).collect();
    Problem::new(Code::BAD_ARGUMENTS, format!("{field}: {value:?} {problem}"))
}

/// A text that no store refuses.
fn printable<'v>(field: &str, value: &'v str) -> Result<&'v str, Problem> {
    let is_fine = value.len() <= 256 && !value.chars().any(char::is_control);
    is_fine
        .then_some(value)
        .ok_or_else(|| wrong(field, value, "has characters that none has, or is too long"))
}

/// A moment that every store can hold.
fn is_kept(moment: &Timestamp) -> bool {
    moment.as_second() >= 0
}

/// A moment, or a day, which begins at midnight in UTC.
fn moment(field: &str, text: &str) -> Result<Timestamp, Problem> {
    let day = || text.parse::<Date>().ok().filter(|day| day.to_string() == text);
    let begins = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|begin| begin.timestamp());
    let moment = day().map_or_else(|| text.parse().ok(), begins);
    moment
        .filter(is_kept)
        .ok_or_else(|| wrong(field, text, "is no time: expected 2026-12-31T23:59:59Z or 2026-12-31"))
}

/// `micros id`, as it was given.
fn behind(text: &str) -> Result<(Timestamp, Uuid), Problem> {
    let parts = || {
        let (micros, id) = text.split_once('|')?;
        let at = Timestamp::from_microsecond(micros.parse().ok()?).ok().filter(is_kept)?;
        Some((at, id.parse().ok()?))
    };
    parts().ok_or_else(|| wrong("after", text, "is not the one of a page before"))
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
        (status = "default", body = Problem, content_type = "application/problem+json", description = "The query is wrong")))]
pub(super) async fn audit<S: Store>(
    State(context): State<Context<S>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    asked.narrow(&context).await?;
    let found = context.machine.records(asked.of, asked.after, asked.limit).await?;
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepted.to_ascii_lowercase().contains("text/csv") {
        return Ok(csv(&found));
    }
    let last = found.last().filter(|_| found.len() == asked.limit);
    let after = last.map(|record| format!("{}|{}", record.taking.at.as_microsecond(), record.id));
    Ok(Json(AuditPage { entries: found.iter().map(AuditEntry::of).collect(), after }).into_response())
}

/// What may hold a comma or a quote is quoted.
fn csv(records: &[Record]) -> Response {
    let mut text = String::from("series,scope,from,to,first,last,count,who,how,at\n");
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for Record { place, range, first, last, count, taking, .. } in records {
        let (series, scope) = (place.series.as_str(), quoted(place.scope.as_str()));
        let (from, to, first, last) = (range.from(), range.to(), quoted(first), quoted(last));
        let (who, how, at) = (quoted(&taking.who), taking.how, taking.at);
        // Writing to a text does not fail.
        let _ = writeln!(text, "{series},{scope},{from},{to},{first},{last},{count},{who},{how},{at}");
    }
    let mut response = Body::from(text).into_response();
    let kind = HeaderValue::from_static("text/csv; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

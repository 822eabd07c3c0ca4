//! Query strings of lists. Owns `after` and `limit`, which work the same for every list.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bates_core::{ErrorCode, ListError, ListRequest, Machine, ScopeFilter, ScopeKey, SeriesName, Store};

use super::permit::Permit;
use super::problem::{Problem, Result};
use super::{request, routes};
pub(super) use crate::series::truncate;

#[derive(Clone, Copy)]
pub(super) struct PageSize {
    pub(super) default: usize,
    pub(super) max: usize,
}

pub(super) const SMALL_PAGE: PageSize = PageSize { default: 100, max: 1_000 };
pub(super) const LARGE_PAGE: PageSize = PageSize { default: 1_000, max: 10_000 };

const PRINTABLE_CHARS_MAX: usize = 256;

pub(super) struct ListQuery {
    after: Option<String>,
    pub(super) limit: usize,
    /// Parameters that were not taken yet, in their order.
    rest: Vec<(String, String)>,
}

fn pairs(uri: &Uri) -> impl Iterator<Item = (String, String)> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned()))
}

pub(super) fn bad_query(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::BAD_ARGUMENTS, detail)
}

pub(super) fn bad_value(field: &str, value: &str, problem: &str) -> Problem {
    bad_query(format!("{field}: {:?} {problem}", truncate(value)))
}

/// A text that every store accepts: short, and without control characters.
pub(super) fn parse_printable(field: &str, value: &str) -> Result<String> {
    let is_valid = value.chars().count() <= PRINTABLE_CHARS_MAX && !value.chars().any(char::is_control);
    let problem = || format!("has control characters or more than {PRINTABLE_CHARS_MAX} characters");
    is_valid.then(|| value.to_owned()).ok_or_else(|| bad_value(field, value, &problem()))
}

impl ListQuery {
    pub(super) fn parse(uri: &Uri, page: PageSize) -> Result<Self> {
        let mut query = Self { after: None, limit: page.default, rest: Vec::new() };
        for (name, value) in pairs(uri) {
            // PostgreSQL stores no NUL; both stores refuse it alike.
            if value.contains('\0') {
                return Err(bad_value(&truncate(&name), &value, "has a NUL character"));
            }
            match &*name {
                "after" => query.after = Some(value),
                // A list with pages of one size has no limit parameter.
                "limit" if page.default < page.max => {
                    let limit = value.parse().ok().filter(|limit| (1..=page.max).contains(limit));
                    let detail = || format!("limit is {:?}; expected 1 to {}", truncate(&value), page.max);
                    query.limit = limit.ok_or_else(|| Problem::new(ErrorCode::BAD_COUNT, detail()))?;
                }
                _ => query.rest.push((name, value)),
            }
        }
        Ok(query)
    }

    /// The last value of a parameter. If it occurs more than once, every value must be valid.
    pub(super) fn take<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        let pairs = self.rest.extract_if(.., |(given, _)| given == name);
        let values = pairs.map(|(_, value)| parse(&value)).collect::<Result<Vec<T>>>()?;
        Ok(values.into_iter().last())
    }

    pub(super) fn take_series(&mut self) -> Result<Option<SeriesName>> {
        self.take("series", routes::parse_series_name)
    }

    /// The series in the query, which must have existed and which the caller may use as its route does.
    pub(super) async fn take_listed_series<S: Store>(
        &mut self,
        machine: &Machine<S>,
        permit: &Permit,
    ) -> Result<Option<SeriesName>> {
        let series = self.take_series()?;
        if let Some(series) = &series {
            machine.check_listed(permit.permissions(), series).await?;
        }
        Ok(series)
    }

    /// The series, and the scopes with the period and all parameters that were not taken yet. The list itself has the
    /// parameters in `own`.
    pub(super) async fn take_listed_scopes<S: Store>(
        &mut self,
        machine: &Machine<S>,
        permit: &Permit,
        own: &[&str],
    ) -> Result<(Option<SeriesName>, Option<ScopeFilter>)> {
        let series = self.take_series()?;
        let period = self.take("period", |period| parse_printable("period", period))?;
        let parameters: Vec<_> = self.rest.iter().map(|(name, value)| (&**name, &**value)).collect();
        let request = ListRequest {
            series: series.as_ref(),
            parameters: &parameters,
            period: period.as_deref(),
            own_parameters: own,
        };
        let scope = machine.listed_scopes(permit.permissions(), request).await?;
        Ok((series, scope))
    }

    /// Refuses parameters that were not taken; the path has those in `own`.
    pub(super) fn check_rest(&self, own: &[&str]) -> Result<()> {
        let Some((name, _)) = self.rest.first() else { return Ok(()) };
        Err(ListError::unknown_parameter(name, own.iter().copied()).into())
    }

    /// Parses the `after` of the previous page, if there is one.
    pub(super) fn after<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let invalid = |after: &str| bad_value("after", after, "is not the after of a previous page");
        self.after.as_deref().map(|after| parse(after).ok_or_else(|| invalid(after))).transpose()
    }

    /// The `after` of the next page, formatted from the last item; `None` if this page is the last.
    pub(super) fn next_after<T>(&self, items: &[T], format: impl FnOnce(&T) -> String) -> Option<String> {
        items.last().filter(|_| items.len() == self.limit).map(format)
    }
}

/// The series in a query that has no other parameter.
pub(super) fn parse_only_series(uri: &Uri) -> Result<Option<SeriesName>> {
    let mut query = ListQuery { after: None, limit: 0, rest: pairs(uri).collect() };
    let series = query.take_series()?;
    query.check_rest(&["series"])?;
    Ok(series)
}

pub(super) fn to_api_scope(key: &ScopeKey) -> (BTreeMap<String, String>, Option<String>) {
    let (parameters, period) = key.parts();
    let scope = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (scope, period.map(str::to_owned))
}

/// The items as CSV, if the request accepts it.
pub(super) fn csv_response<T>(
    headers: &HeaderMap,
    header_row: &str,
    items: &[T],
    row: impl Fn(&T) -> String,
) -> Option<Response> {
    if !request::accepted_types(headers).contains("text/csv") {
        return None;
    }
    let lines = std::iter::once(header_row.to_owned()).chain(items.iter().map(row));
    let text: String = lines.map(|line| line + "\n").collect();
    Some(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response())
}

//! Queries of lists: which page, and of what. Owns `after` and `limit`, for every list alike.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bates_core::{Code, ScopeKey, SeriesName};

use super::problem::Problem;
use super::{ask, routes};
pub(super) use crate::series::cut;

#[derive(Clone, Copy)]
pub(super) struct PageSize {
    pub(super) default: usize,
    pub(super) max: usize,
}

pub(super) const SMALL: PageSize = PageSize { default: 100, max: 1_000 };
pub(super) const LARGE: PageSize = PageSize { default: 1_000, max: 10_000 };

pub(super) struct ListQuery {
    after: Option<String>,
    pub(super) limit: usize,
    /// Pairs that were not taken yet, in their order.
    rest: Vec<(String, String)>,
}

fn pairs(uri: &Uri) -> impl Iterator<Item = (String, String)> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned()))
}

pub(super) fn refuse(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BAD_ARGUMENTS, detail)
}

pub(super) fn wrong(field: &str, value: &str, problem: &str) -> Problem {
    refuse(format!("{field}: {:?} {problem}", cut(value)))
}

/// A text that every store accepts.
pub(super) fn printable(field: &str, value: &str) -> Result<String, Problem> {
    let is_fine = value.len() <= 256 && !value.chars().any(char::is_control);
    let bad = || wrong(field, value, "has characters that none has, or is too long");
    is_fine.then(|| value.to_owned()).ok_or_else(bad)
}

impl ListQuery {
    pub(super) fn of(uri: &Uri, page: PageSize) -> Result<Self, Problem> {
        let mut query = Self { after: None, limit: page.default, rest: Vec::new() };
        for (name, value) in pairs(uri) {
            match &*name {
                "after" => query.after = Some(value),
                // A page of one size takes no limit.
                "limit" if page.default < page.max => {
                    let given = value.parse().ok().filter(|given| (1..=page.max).contains(given));
                    let bad = || Problem::new(Code::BAD_COUNT, format!("limit is 1 to {}", page.max));
                    query.limit = given.ok_or_else(bad)?;
                }
                _ => query.rest.push((name, value)),
            }
        }
        Ok(query)
    }

    /// The last value of that name; all of them have to be good.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, Problem>,
    ) -> Result<Option<T>, Problem> {
        let given = self.rest.extract_if(.., |(given, _)| given == name);
        let values = given.map(|(_, value)| read(&value)).collect::<Result<Vec<T>, Problem>>()?;
        Ok(values.into_iter().last())
    }

    pub(super) fn take_series(&mut self) -> Result<Option<SeriesName>, Problem> {
        self.take("series", routes::name)
    }

    /// From the period, and from all pairs that are left, which are its parameters.
    pub(super) fn take_scope(&mut self) -> Result<Option<ScopeKey>, Problem> {
        let period = self.take("period", |period| printable("period", period))?;
        let parameters = self.rest.iter().map(|(name, value)| (&**name, &**value));
        if self.rest.is_empty() && period.is_none() {
            return Ok(None);
        }
        let key = ScopeKey::named(parameters, period.as_deref());
        key.map(Some).map_err(|error| Problem::new(Code::BAD_SCOPE, error.to_string()))
    }

    pub(super) fn check_rest(&self, refusal: impl FnOnce(&str) -> String) -> Result<(), Problem> {
        self.rest.first().map_or(Ok(()), |(name, _)| Err(refuse(refusal(name))))
    }

    /// The `after` of the page before, if one is given.
    pub(super) fn after<T>(&self, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let unread = |after: &str| wrong("after", after, "is not the one of a page before");
        self.after.as_deref().map(|after| read(after).ok_or_else(|| unread(after))).transpose()
    }

    /// The `after` of the page behind these items, unless they are the last.
    pub(super) fn next<T>(&self, found: &[T], spell: impl FnOnce(&T) -> String) -> Option<String> {
        found.last().filter(|_| found.len() == self.limit).map(spell)
    }
}

/// The series in a query that may have no other name.
pub(super) fn only_series(uri: &Uri) -> Result<Option<SeriesName>, Problem> {
    let mut query = ListQuery { after: None, limit: 0, rest: pairs(uri).collect() };
    let series = query.take_series()?;
    query.check_rest(|_| "the query may have series".to_owned())?;
    Ok(series)
}

pub(super) fn spell_scope(key: &ScopeKey) -> (BTreeMap<String, String>, Option<String>) {
    let (parameters, period) = key.parts();
    let scope = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (scope, period.map(str::to_owned))
}

/// Rows of CSV, if the request accepts them.
pub(super) fn csv<T>(
    headers: &HeaderMap,
    columns: &str,
    items: &[T],
    row: impl Fn(&T) -> String,
) -> Option<Response> {
    if !ask::accepted_kinds(headers).contains("text/csv") {
        return None;
    }
    let lines = std::iter::once(columns.to_owned()).chain(items.iter().map(row));
    let text: String = lines.map(|line| line + "\n").collect();
    Some(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response())
}

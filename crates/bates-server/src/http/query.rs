//! Queries of lists: which page, and of what. Owns `after` and `limit`, for every list alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bates_core::{Code, Entry, ScopeKey, Store};

use super::ask;
use super::problem::Problem;
use super::routes::Context;

/// How many items a page has unless the query says, and the most that it may ask for.
#[derive(Clone, Copy)]
pub(super) struct PageSize {
    pub(super) default: usize,
    pub(super) max: usize,
}

/// For lists whose items are read one by one.
pub(super) const SMALL: PageSize = PageSize { default: 100, max: 1_000 };

/// For lists that are exported.
pub(super) const LARGE: PageSize = PageSize { default: 1_000, max: 10_000 };

/// The query of a list.
pub(super) struct ListQuery {
    after: Option<String>,
    pub(super) limit: usize,
    /// Everything else, in the order in which it came.
    pub(super) rest: Vec<(String, String)>,
}

/// All pairs of a query.
pub(super) fn pairs(uri: &Uri) -> impl Iterator<Item = (String, String)> {
    let query = uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned()))
}

pub(super) fn refuse(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BAD_ARGUMENTS, detail)
}

/// A text that is shown in an error.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(64).collect()
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

    /// The `after` of the page before, if one is given; `read` knows what it looks like.
    pub(super) fn after<T>(&self, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let unread = |after: &str| refuse(format!("after: {:?} is not the one of a page before", cut(after)));
        self.after.as_deref().map(|after| read(after).ok_or_else(|| unread(after))).transpose()
    }

    /// The `after` of the page behind these items, unless they are the last.
    pub(super) fn next<T>(&self, found: &[T], spell: impl FnOnce(&T) -> String) -> Option<String> {
        found.last().filter(|_| found.len() == self.limit).map(spell)
    }
}

/// The series that a query names, which may name nothing else.
pub(super) async fn only_series<S: Store>(
    context: &Context<S>,
    uri: &Uri,
) -> Result<Option<Arc<Entry>>, Problem> {
    let mut only = None;
    for (name, value) in pairs(uri) {
        match &*name {
            "series" => only = Some(context.series(&value).await?),
            _ => return Err(refuse("the query may have series")),
        }
    }
    Ok(only)
}

/// The scope of which a query gives parameters, a period or both.
pub(super) fn read_scope(
    parameters: &[(&str, &str)],
    period: Option<&str>,
) -> Result<Option<ScopeKey>, Problem> {
    if parameters.is_empty() && period.is_none() {
        return Ok(None);
    }
    let bad = |error: bates_core::ScopeKeyError| Problem::new(Code::BAD_SCOPE, error.to_string());
    let key = ScopeKey::new(parameters.iter().copied(), None).map_err(bad)?;
    Ok(Some(match period {
        Some(period) => ScopeKey::from_store(format!("{key} @{period}").trim_start()),
        None => key,
    }))
}

/// A scope as an answer spells it: its parameters and its period.
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

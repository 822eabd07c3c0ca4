//! `…/scopes` and `…/peek`: the state of scopes. Must never change a scope.

use axum::Json;
use axum::http::Uri;
use bates_api::{Day, Peek, ScopeCursor, ScopePage};
use bates_core::{Position, ScopeKey, Store};

use super::permit::Permit;
use super::problem::JsonResult;
use super::query::{self, ListQuery};
use super::request;
use super::routes::{Context, Series};

/// List the scopes of a series
#[utoipa::path(get, path = "/v1/series/{series}/scopes", tag = "series",
    params(("series" = String, Path, description = "The name of the series", example = "document"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "The maximum number of scopes: 1 to 1,000, by default 100")),
    responses((status = 200, body = ScopePage), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series, or the query is invalid")))]
pub(super) async fn list_scopes<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    uri: Uri,
) -> JsonResult<ScopePage> {
    let query = ListQuery::parse(&uri, query::SMALL_PAGE)?;
    query.check_rest(&["after", "limit"])?;
    let after = query.after(|after| Some(ScopeKey::from_store(after)))?;
    let name = entry.series().name();
    let fetch = |after, limit| context.machine.scopes(name.clone(), after, limit);
    let cursors = permit.page(query.limit, after, fetch, |(key, _)| key.clone(), |(key, _)| key).await?;
    let after = query.next_after(&cursors, |(key, _)| key.to_string());
    let scopes = cursors.iter().map(|(key, cursor)| {
        let (scope, period) = query::to_api_scope(key);
        ScopeCursor { scope, period, cursor: cursor.next }
    });
    Ok(Json(ScopePage { scopes: scopes.collect(), after }))
}

/// Show the state of a scope without taking a number
#[utoipa::path(get, path = "/v1/series/{series}/peek", tag = "numbers",
    params(("series" = String, Path, description = "The name of the series", example = "short"),
        ("date" = Option<String>, Query, description = "The business date. Further query parameters name the scope")),
    responses((status = 200, body = Peek), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series, or the parameters are not those of the series")))]
pub(super) async fn peek_scope<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    uri: Uri,
) -> JsonResult<Peek> {
    let request = request::parse_number_query(uri.query().unwrap_or_default())?;
    let pairs = request.scope.pairs();
    let params = permit.scope(&pairs, request.date.map(Day::date))?;
    let peek = context.machine.peek(&entry, params).await?;
    let left_is_estimate = !entry.series().pattern().reject().is_empty();
    let bates_core::Peek { last, next, left, exists } = peek;
    let [last, next] = [last, next].map(|position| position.map(Position::value));
    Ok(Json(Peek { exists, last, next, left, left_is_estimate }))
}

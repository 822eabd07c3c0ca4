//! `…/scopes` and `…/peek`: what is known of scopes, without touching one.

use axum::Json;
use axum::http::Uri;
use bates_api::{Peek, ScopeCursor, ScopePage};
use bates_core::{Position, ScopeKey, Store};

use super::ask;
use super::problem::Answer;
use super::query::{self, ListQuery};
use super::routes::{Context, Series};

/// List the scopes of a series
#[utoipa::path(get, path = "/v1/series/{series}/scopes", tag = "series",
    params(("series" = String, Path, description = "The name of a series", example = "document"),
        ("after" = Option<String>, Query, description = "The `after` of the page before"),
        ("limit" = Option<usize>, Query, description = "How many; 100 unless said, at most 1,000")),
    responses((status = 200, body = ScopePage), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such series")))]
pub(super) async fn list<S: Store>(
    context: Context<S>,
    Series(entry): Series,
    uri: Uri,
) -> Answer<ScopePage> {
    let query = ListQuery::of(&uri, query::SMALL)?;
    query.check_rest(|_| "the query may have after and limit".to_owned())?;
    let after = query.after(|after| Some(ScopeKey::from_store(after)))?;
    let found = context.machine.scopes(entry.series().name().clone(), after, query.limit).await?;
    let scopes = found.iter().map(|(key, cursor)| {
        let (scope, period) = query::spell_scope(key);
        ScopeCursor { scope, period, cursor: cursor.next }
    });
    Ok(Json(ScopePage { scopes: scopes.collect(), after: query.next(&found, |(key, _)| key.to_string()) }))
}

/// Look at a scope without taking a number
#[utoipa::path(get, path = "/v1/series/{series}/peek", tag = "numbers",
    params(("series" = String, Path, description = "The name of a series", example = "short"),
        ("date" = Option<String>, Query, description = "The business date; further parameters name the scope")),
    responses((status = 200, body = Peek), (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "There is no such scope")))]
pub(super) async fn peek<S: Store>(context: Context<S>, Series(entry): Series, uri: Uri) -> Answer<Peek> {
    let ask = ask::read_numbers_query(uri.query().unwrap_or_default())?;
    let parameters: Vec<_> = ask.scope.iter().collect();
    let peek = context.machine.peek(&entry, ask::name(&parameters, ask.date)).await?;
    let left_is_estimate = !entry.series().pattern().reject().is_empty();
    let bates_core::Peek { last, next, left, exists } = peek;
    let [last, next] = [last, next].map(|position| position.map(Position::value));
    Ok(Json(Peek { exists, last, next, left, left_is_estimate }))
}

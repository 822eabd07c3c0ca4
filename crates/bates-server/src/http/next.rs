//! `POST /v1/series/{series}/next`: numbers, as one JSON object or as lines that are sent while they are made.

use std::sync::Arc;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::extract::Extension;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bates_api::NumberRequest;
use bates_core::{By, Code, Entry, NextError, Numbers, Store};
use futures_util::stream;

use super::ask;
use super::problem::Problem;
use super::routes::{Context, Series};
use crate::Caller;

/// Some megabytes.
const OBJECT_MAX: u64 = 100_000;
const LINES_MAX: u64 = 1_000_000;
const LINES_AT_ONCE: u64 = 4_096;

/// Take the next numbers of a scope
///
/// What is asked may also stand in the query: `?count=2&project=PROJ&type=9012`. With `Accept: text/plain` the
/// numbers come one a line, up to 1,000,000, and are sent while they are made; as JSON up to 100,000.
#[utoipa::path(post, path = "/v1/series/{series}/next", tag = "numbers",
    params(("series" = String, Path, description = "The name of a series", example = "document")),
    request_body(content = Option<NumberRequest>),
    responses((status = 200, description = "The numbers", content((bates_api::Numbers = "application/json"), (String = "text/plain"))),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn next<S: Store>(
    context: Context<S>,
    Extension(caller): Extension<Caller>,
    Series(entry): Series,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask = ask::read_numbers(&uri, body, context.body_timeout).await?;
    let as_lines = wants_lines(&headers);
    ask::check_count(ask.count, if as_lines { LINES_MAX } else { OBJECT_MAX })?;
    if as_lines {
        return Lines { context, entry, ask, caller }.answer().await;
    }
    let parameters: Vec<_> = ask.scope.iter().collect();
    let by = By::http(caller.who());
    let numbers = context.machine.next(&entry, ask::name(&parameters, ask.date), ask.count, by).await?;
    Ok(object(&numbers))
}

fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = ask::accepted_kinds(headers);
    let mut kinds = accepted.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
    // A client that accepts both gets JSON.
    kinds.any(|kind| kind == "text/plain") && !accepted.contains("application/json")
}

fn object(numbers: &Numbers) -> Response {
    let mut body = Vec::with_capacity(16 + numbers.len() * 20);
    body.extend_from_slice(b"{\"ids\":[");
    for (at, (_, number)) in numbers.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        serde_json::to_writer(&mut body, number).expect("a text is written into memory");
    }
    body.extend_from_slice(b"]}");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Numbers that are sent as lines; `ask.count` is how many are still to come.
struct Lines<S> {
    context: Context<S>,
    entry: Arc<Entry>,
    ask: NumberRequest,
    caller: Caller,
}

impl<S: Store> Lines<S> {
    /// The first lines are made before the answer begins, so that an error has its status. A later one breaks the
    /// connection off: what was sent was issued, and the client sees that it is not all.
    async fn answer(mut self) -> Result<Response, Problem> {
        let first = self.some().await?;
        let rest = stream::try_unfold(self, |mut lines| async move {
            if lines.ask.count == 0 {
                return Ok(None);
            }
            // Looked up anew: a retired series issues nothing more.
            let name = lines.entry.series().name().as_str();
            lines.entry = lines.context.machine.named(name).ok_or("the series was retired")?;
            match lines.some().await {
                Ok(some) => Ok(Some((some, lines))),
                Err(error) if [Code::EXHAUSTED, Code::HELD_ELSEWHERE].contains(&error.code()) => Ok(None),
                Err(error) => Err(error.into()),
            }
        });
        let all = futures_util::StreamExt::chain(stream::iter([Ok::<_, BoxError>(first)]), rest);
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        Ok((kind, Body::from_stream(all)).into_response())
    }

    /// Up to [`LINES_AT_ONCE`] lines. Where the space ends there are fewer, and the next call fails.
    async fn some(&mut self) -> Result<Bytes, NextError> {
        let Self { context, entry, ask, caller } = self;
        let parameters: Vec<_> = ask.scope.iter().collect();
        let (name, count) = (ask::name(&parameters, ask.date), ask.count.min(LINES_AT_ONCE));
        let numbers = context.machine.next(entry, name, count, By::http(caller.who())).await?;
        let mut text = Vec::with_capacity(numbers.len() * 20);
        for (_, number) in numbers.iter() {
            text.extend_from_slice(number.as_bytes());
            text.push(b'\n');
        }
        ask.count -= numbers.len() as u64;
        Ok(text.into())
    }
}

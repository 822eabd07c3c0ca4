//! `POST /v1/series/{series}/next`: numbers, as one JSON object or as a stream of lines.

use std::sync::Arc;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bates_api::{Day, NumberRequest};
use bates_core::{ErrorCode, NextError, Numbers, ScopeParams, SeriesEntry, Store};
use futures_util::stream;

use super::permit::Permit;
use super::problem::Result;
use super::request::Unkeyed;
use super::routes::{Context, Series};
use super::{meter, request};
use crate::access::Payment;

/// The response then has some megabytes.
const JSON_COUNT_MAX: u64 = 100_000;
const LINE_COUNT_MAX: u64 = 1_000_000;
/// Lines that are taken and sent together.
const CHUNK_LINES: u64 = 4_096;

/// Take the next numbers of a scope
///
/// The request may be a JSON body or a query: `?count=2&project=PROJ&type=9012`. With
/// `"positions": true` in the body the response has the position of each number, too. With `Accept: text/plain` it
/// has one number per line, up to 1,000,000, and is sent while the numbers are taken; as JSON it has up to 100,000.
/// A request with the header `Idempotency-Key` is refused with `not_repeatable`: reservations and documents have keys.
#[utoipa::path(post, path = "/v1/series/{series}/next", tag = "numbers",
    params(("series" = String, Path, description = "The name of the series", example = "document")),
    request_body(content = Option<NumberRequest>),
    responses((status = 200, description = "The numbers", content((bates_api::Numbers = "application/json"), (String = "text/plain"))),
        (status = "default", description = "No number was issued", body = bates_api::Problem, content_type = "application/problem+json")))]
pub(super) async fn next_numbers<S: Store>(
    context: Context<S>,
    permit: Permit,
    Series(entry): Series,
    _: Unkeyed,
    incoming: Request,
) -> Result<Response> {
    let as_lines = accepts_only_text(incoming.headers());
    let (parts, body) = incoming.into_parts();
    let request = request::read_number_request(&parts.uri, body, context.body_timeout).await?;
    request::check_count(request.count, if as_lines { LINE_COUNT_MAX } else { JSON_COUNT_MAX })?;
    let pairs = request.scope.pairs();
    let params = permit.scope(&pairs, request.date.map(Day::date))?;
    if as_lines {
        drop(pairs);
        let payment = Payment::NONE;
        return NumberLines { context, entry, request, permit, payment }.into_response().await;
    }
    let (machine, count) = (&context.machine, request.count);
    meter::reserve_numbers(&parts.extensions, machine, &entry, params, count)?;
    let take = machine.next(&entry, params, count, permit.actor());
    let numbers = permit.take(machine, count, take, |numbers| numbers.len() as u64).await?;
    Ok(json_response(&numbers, request.positions))
}

/// A client that accepts both formats gets JSON.
fn accepts_only_text(headers: &HeaderMap) -> bool {
    let accepted = request::accepted_types(headers);
    let mut types = accepted.split(',').map(|entry| entry.split(';').next().unwrap_or_default().trim());
    types.any(|media_type| media_type == "text/plain") && !accepted.contains("application/json")
}

fn json_response(numbers: &Numbers, with_positions: bool) -> Response {
    let mut body = Vec::with_capacity(16 + numbers.len() * 20);
    body.extend_from_slice(b"{\"ids\":[");
    for (index, (_, number)) in numbers.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        serde_json::to_writer(&mut body, number).expect("writing to a Vec does not fail");
    }
    body.push(b']');
    if with_positions {
        body.extend_from_slice(b",\"positions\":");
        let positions: Vec<u64> = numbers.iter().map(|(position, _)| position.value()).collect();
        serde_json::to_writer(&mut body, &positions).expect("integers are written into memory");
    }
    body.push(b'}');
    // It is held until the client has read it.
    body.shrink_to_fit();
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Numbers that are sent as lines; `request.count` is how many are still to be sent.
struct NumberLines<S> {
    context: Context<S>,
    entry: Arc<SeriesEntry>,
    request: NumberRequest,
    permit: Permit,
    payment: Payment,
}

/// Lines that were not sent, because the scope or the connection ended, return to the rate and quota of the caller.
impl<S> Drop for NumberLines<S> {
    fn drop(&mut self) {
        self.permit.caller.give_back(self.payment, self.request.count);
    }
}

impl<S: Store> NumberLines<S> {
    /// The first chunk is taken before the response begins, so that an error has its HTTP status. A later error aborts the
    /// connection: the numbers sent so far are issued, and the client sees that the response is incomplete.
    async fn into_response(mut self) -> Result<Response> {
        // The rate and quota of the caller allow all lines or none: a stream that began should not break off.
        let count = self.request.count;
        self.payment = self.permit.caller.pay(&self.context.machine, count).await?;
        let first = self.next_chunk().await?;
        let rest = stream::try_unfold(self, |mut lines| async move {
            if lines.request.count == 0 {
                return Ok(None);
            }
            lines.permit.check_valid().map_err(|problem| problem.body.detail)?;
            // Looked up for each chunk: the series may have been retired.
            let name = lines.entry.series().name().as_str();
            lines.entry = lines.context.machine.series(name).ok_or("the series was retired")?;
            match lines.next_chunk().await {
                Ok(chunk) => Ok(Some((chunk, lines))),
                Err(error) if [ErrorCode::EXHAUSTED, ErrorCode::HELD_ELSEWHERE].contains(&error.code()) => {
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        });
        let chunks = futures_util::StreamExt::chain(stream::iter([Ok::<_, BoxError>(first)]), rest);
        let content_type = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        Ok((content_type, Body::from_stream(chunks)).into_response())
    }

    /// Up to [`CHUNK_LINES`] lines. At the end of the scope there are fewer, and the next call fails.
    async fn next_chunk(&mut self) -> Result<Bytes, NextError> {
        let Self { context, entry, request, permit, .. } = self;
        let params = ScopeParams { parameters: &request.scope.pairs(), date: request.date.map(Day::date) };
        let count = request.count.min(CHUNK_LINES);
        // Counted before: a call that is cancelled may have taken them, and they do not return to the quota.
        request.count -= count;
        let taken = context.machine.next(entry, params, count, permit.actor()).await;
        request.count += count - taken.as_ref().map_or(0, |numbers| numbers.len() as u64);
        let numbers = taken?;
        let mut text = Vec::with_capacity(numbers.len() * 20);
        for (_, number) in numbers.iter() {
            text.extend_from_slice(number.as_bytes());
            text.push(b'\n');
        }
        Ok(text.into())
    }
}

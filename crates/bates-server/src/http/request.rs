//! Reads requests: bodies within their size limits, numbers requested in a body or a query, and accepted media types.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use bates_api::{DayError, NumberRequest, Parameters};
use bates_core::{ErrorCode, Store};
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;

use super::problem::{Problem, Result};
use super::routes::ServerState;
use crate::series::truncate;

pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;

/// A body of one JSON object with at most `BYTES_MAX` bytes.
pub(super) struct JsonBody<T, const BYTES_MAX: usize = BODY_BYTES_MAX>(pub(super) T);

impl<T: DeserializeOwned, S: Store, const BYTES_MAX: usize> FromRequest<Arc<ServerState<S>>>
    for JsonBody<T, BYTES_MAX>
{
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<ServerState<S>>) -> Result<Self> {
        parse_json(&read_body(request.into_body(), BYTES_MAX, context.body_timeout).await?).map(Self)
    }
}

/// As [`JsonBody`], but an empty body stands for the default.
pub(super) struct OptionalJsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Default, S: Store> FromRequest<Arc<ServerState<S>>> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<ServerState<S>>) -> Result<Self> {
        let body = read_body(request.into_body(), BODY_BYTES_MAX, context.body_timeout).await?;
        if body.is_empty() { Ok(Self(T::default())) } else { parse_json(&body).map(Self) }
    }
}

pub(super) async fn read_number_request(uri: &Uri, body: Body, timeout: Duration) -> Result<NumberRequest> {
    let body = read_body(body, BODY_BYTES_MAX, timeout).await?;
    match (uri.query().unwrap_or_default(), &*body) {
        (query, []) => parse_number_query(query),
        ("", body) => parse_json(body),
        _ => Err(Problem::new(ErrorCode::BAD_BODY, "send a body or a query, not both")),
    }
}

/// Every parameter except `count` and `date` is a parameter of the scope.
pub(super) fn parse_number_query(query: &str) -> Result<NumberRequest> {
    let twice = |name| Problem::new(ErrorCode::BAD_ARGUMENTS, format!("{name} occurs twice in the query"));
    let bad_count = |value: &str| {
        Problem::new(ErrorCode::BAD_COUNT, format!("count is {:?}, not a whole number", truncate(value)))
    };
    let bad_date = |error: DayError| Problem::new(ErrorCode::BAD_DATE, error.to_string());
    let (mut scope, mut count, mut date) = (Parameters::default(), None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "count" if count.is_some() => return Err(twice("count")),
            "count" => count = Some(parse_whole(&value).ok_or_else(|| bad_count(&value))?),
            "date" if date.is_some() => return Err(twice("date")),
            "date" => date = Some(value.parse().map_err(bad_date)?),
            _ => scope.push(name, value),
        }
    }
    Ok(NumberRequest { scope, count: count.unwrap_or(1), date, positions: false })
}

/// Digits only: no sign.
pub(super) fn parse_whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(super) fn check_count(count: u64, count_max: u64) -> Result<()> {
    let detail = || format!("count is {count}; expected 1 to {count_max}");
    if (1..=count_max).contains(&count) { Ok(()) } else { Err(Problem::new(ErrorCode::BAD_COUNT, detail())) }
}

/// A request without an idempotency key, for calls that could not answer a repeated one with the same numbers.
pub(super) struct Unkeyed;

impl<C: Send + Sync> FromRequestParts<C> for Unkeyed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &C) -> Result<Self> {
        if !parts.headers.contains_key("idempotency-key") {
            return Ok(Self);
        }
        let detail = "numbers without a document cannot be repeated by an Idempotency-Key, so none was taken; use \
                      POST /v1/series/{series}/reservations or /documents, which can";
        Err(Problem::new(ErrorCode::NOT_REPEATABLE, detail))
    }
}

/// The `Accept` header in lower case.
pub(super) fn accepted_types(headers: &HeaderMap) -> String {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().to_ascii_lowercase()
}

pub(super) async fn read_body(body: Body, bytes_max: usize, timeout: Duration) -> Result<Bytes> {
    let too_big = || Problem::new(ErrorCode::TOO_LARGE, format!("the body has more than {bytes_max} bytes"));
    let unreadable = |detail| Problem::new(ErrorCode::BAD_REQUEST, detail);
    if hyper::body::Body::size_hint(&body).lower() > bytes_max as u64 {
        return Err(too_big());
    }
    match tokio::time::timeout(timeout, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) => Err(too_big()),
        Ok(Err(error)) if is_out_of_memory(&error) => {
            let detail = "the memory for requests is used up; this body was not read to its end";
            Err(Problem::new(ErrorCode::OVERLOADED, detail))
        }
        Ok(Err(_)) => Err(unreadable("the body is incomplete, or its chunked encoding is invalid")),
        Err(_) => Err(unreadable("the body did not arrive in time")),
    }
}

fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
    let is = |error: &io::Error| error.kind() == io::ErrorKind::OutOfMemory;
    error.downcast_ref().is_some_and(is) || error.source().is_some_and(is_out_of_memory)
}

/// Whether a JSON text has the escape `\u0000`, which PostgreSQL does not store in a text.
fn has_nul_escape(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        if rest[at + 1..].starts_with(b"u0000") {
            return true;
        }
        // The byte after a backslash belongs to it: a second backslash escapes nothing.
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

/// Parses a body of one JSON object: status 400 if it is not JSON, 422 if its fields are not the expected ones or a
/// text has a NUL character, on both stores alike.
pub(super) fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    // Serde would also accept an array, as the fields of the object in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let not_object = || Err(serde::de::Error::custom("expected an object"));
    let parsed = if is_object { serde_json::from_slice(body) } else { not_object() };
    let parsed = parsed.map_err(|error: serde_json::Error| {
        if std::str::from_utf8(body).is_err() {
            return Problem::new(ErrorCode::BAD_BODY, "the body is not UTF-8");
        }
        // Serde may report an unexpected field before it reaches invalid JSON further on.
        match serde_json::from_slice::<serde_json::Value>(body) {
            Ok(_) => Problem::new(ErrorCode::BAD_BODY, error.to_string()),
            Err(error) => Problem::new(ErrorCode::BAD_REQUEST, error.to_string()),
        }
    })?;
    if has_nul_escape(body) {
        return Err(Problem::new(ErrorCode::BAD_BODY, "a text in the body has a NUL character (\\u0000)"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::has_nul_escape;

    #[test]
    fn only_an_escape_is_a_nul_character() {
        for (json, expected) in [
            (r#""\u0000""#, true),
            (r#""\\u0000""#, false),
            (r#""\\\u0000""#, true),
            (r#""u0000""#, false),
            ("\"\\", false),
        ] {
            assert_eq!(has_nul_escape(json.as_bytes()), expected, "{json}");
        }
    }
}

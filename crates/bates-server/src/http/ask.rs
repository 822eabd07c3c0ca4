//! What was asked: bodies, read within their bounds, the scope that they name, and which answers are accepted.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Uri, header};
use bates_api::{Day, DayError, NumberRequest, Parameters};
use bates_core::{Code, ScopeName, Store};
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use super::routes::Shared;

pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;

/// A body of one JSON object with at most `BYTES_MAX` bytes.
pub(super) struct Ask<T, const BYTES_MAX: usize = BODY_BYTES_MAX>(pub(super) T);

impl<T: DeserializeOwned, S: Store, const BYTES_MAX: usize> FromRequest<Arc<Shared<S>>>
    for Ask<T, BYTES_MAX>
{
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Shared<S>>) -> Result<Self, Problem> {
        json(&bytes(request.into_body(), BYTES_MAX, context.body_timeout).await?).map(Self)
    }
}

/// As [`Ask`], but an empty body asks for the default.
pub(super) struct AskOrDefault<T>(pub(super) T);

impl<T: DeserializeOwned + Default, S: Store> FromRequest<Arc<Shared<S>>> for AskOrDefault<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Shared<S>>) -> Result<Self, Problem> {
        let body = bytes(request.into_body(), BODY_BYTES_MAX, context.body_timeout).await?;
        if body.is_empty() { Ok(Self(T::default())) } else { json(&body).map(Self) }
    }
}

pub(super) async fn read_numbers(uri: &Uri, body: Body, timeout: Duration) -> Result<NumberRequest, Problem> {
    let body = bytes(body, BODY_BYTES_MAX, timeout).await?;
    match (uri.query().unwrap_or_default(), &*body) {
        (query, []) => read_numbers_query(query),
        ("", body) => json(body),
        _ => Err(Problem::new(Code::BAD_BODY, "ask in the body or in the query, not in both")),
    }
}

/// Everything but `count` and `date` is a parameter of the scope.
pub(super) fn read_numbers_query(query: &str) -> Result<NumberRequest, Problem> {
    let twice = |name| Problem::new(Code::BAD_ARGUMENTS, format!("{name} is given twice"));
    let no_count = || Problem::new(Code::BAD_COUNT, "the count is no whole number");
    let no_day = |error: DayError| Problem::new(Code::BAD_DATE, error.to_string());
    let (mut scope, mut asked, mut date) = (Parameters::default(), None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "count" if asked.is_some() => return Err(twice("count")),
            "count" => asked = Some(whole(&value).ok_or_else(no_count)?),
            "date" if date.is_some() => return Err(twice("date")),
            "date" => date = Some(value.parse().map_err(no_day)?),
            _ => scope.push(name, value),
        }
    }
    Ok(NumberRequest { scope, count: asked.unwrap_or(1), date })
}

pub(super) fn name<'a>(parameters: &'a [(&'a str, &'a str)], date: Option<Day>) -> ScopeName<'a> {
    ScopeName { parameters, date: date.map(Day::date) }
}

pub(super) fn whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(super) fn check_count(count: u64, count_max: u64) -> Result<(), Problem> {
    if (1..=count_max).contains(&count) {
        return Ok(());
    }
    Err(Problem::new(Code::BAD_COUNT, format!("the count is {count}; it may be 1 to {count_max}")))
}

pub(super) fn accepted_kinds(headers: &HeaderMap) -> String {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().to_ascii_lowercase()
}

pub(super) async fn bytes(body: Body, bytes_max: usize, timeout: Duration) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(Code::TOO_LARGE, format!("the body has more than {bytes_max} bytes"));
    let broken = |detail| Problem::new(Code::BAD_REQUEST, detail);
    if hyper::body::Body::size_hint(&body).lower() > bytes_max as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) => Err(too_large()),
        Ok(Err(_)) => Err(broken("the body broke off, or is not chunked as it says")),
        Err(_) => Err(broken("the body did not arrive in time")),
    }
}

/// A body as one JSON object: 400 if it is none, 422 if it says something else than was expected.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Serde would also read a list, as the fields of the object in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let not_object = || Err(serde::de::Error::custom("expected an object"));
    let read = if is_object { serde_json::from_slice(body) } else { not_object() };
    read.map_err(|error: serde_json::Error| {
        if std::str::from_utf8(body).is_err() {
            return Problem::new(Code::BAD_BODY, "the body is not UTF-8");
        }
        // An error about the content may come before one about the text itself.
        match serde_json::from_slice::<serde_json::Value>(body) {
            Ok(_) => Problem::new(Code::BAD_BODY, error.to_string()),
            Err(error) => Problem::new(Code::BAD_REQUEST, error.to_string()),
        }
    })
}

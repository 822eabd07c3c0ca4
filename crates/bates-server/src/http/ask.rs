//! What was asked: bodies and queries, read within their bounds.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::Uri;
use bates_core::{Code, ScopeName};
use bates_pattern::Date;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::problem::Problem;

/// The largest body of a question about numbers.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Names and values, in the order in which they came, also if one came twice.
#[derive(Debug, Default)]
pub(super) struct Pairs(Vec<(String, String)>);

/// Which numbers are wanted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[schema(value_type = std::collections::BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"}))]
    scope: Pairs,
    /// How many numbers.
    #[serde(default = "one")]
    #[schema(default = 1, minimum = 1, maximum = 1_000_000)]
    pub(super) count: u64,
    /// The business date, for a series that shows one; by default today's, in its time zone.
    #[schema(value_type = Option<String>, format = Date, example = "2026-12-31")]
    #[serde(default)]
    date: Option<Day>,
}

/// A day, written as `2026-12-31` and in no other way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Day(Date);

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn one() -> u64 {
    1
}

impl Ask {
    /// Reads what is asked from the body, or from the query if there is no body.
    pub(super) async fn read(uri: &Uri, body: Body, timeout: Duration) -> Result<Self, Problem> {
        let body = bytes(body, BODY_BYTES_MAX, timeout).await?;
        match (uri.query().unwrap_or_default(), &*body) {
            (query, []) => Self::of_query(query),
            ("", body) => json(body),
            _ => Err(Problem::new(Code::BAD_BODY, "ask in the body or in the query, not in both")),
        }
    }

    /// `count` and `date` are themselves, everything else is a parameter of the scope.
    pub(super) fn of_query(query: &str) -> Result<Self, Problem> {
        let mut ask = Self { scope: Pairs::default(), count: 1, date: None };
        let mut is_counted = false;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "count" | "date"
                    if (is_counted && name == "count") || (ask.date.is_some() && name == "date") =>
                {
                    return Err(Problem::new(Code::BAD_ARGUMENTS, format!("{name} is given twice")));
                }
                "count" => (ask.count, is_counted) = (count(&value)?, true),
                "date" => ask.date = Some(Day::of(&value).ok_or_else(|| bad_date(&value))?),
                _ => ask.scope.0.push((name.into_owned(), value.into_owned())),
            }
        }
        Ok(ask)
    }

    pub(super) fn parameters(&self) -> Vec<(&str, &str)> {
        self.scope.parameters()
    }

    pub(super) fn name<'a>(&self, parameters: &'a [(&'a str, &'a str)]) -> ScopeName<'a> {
        name(parameters, self.date)
    }
}

/// The name of a scope.
pub(super) fn name<'a>(parameters: &'a [(&'a str, &'a str)], date: Option<Day>) -> ScopeName<'a> {
    ScopeName { parameters, date: date.map(|Day(date)| date) }
}

impl Pairs {
    pub(super) fn parameters(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

fn count(text: &str) -> Result<u64, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = digits.then(|| text.parse().ok()).flatten();
    count.ok_or_else(|| Problem::new(Code::BAD_COUNT, "the count is no whole number"))
}

fn bad_date(text: &str) -> Problem {
    let text: String = text.chars().take(32).collect();
    Problem::new(Code::BAD_DATE, format!("{text:?} is no day: expected YYYY-MM-DD"))
}

/// A body within its bounds of size and time.
pub(super) async fn bytes(body: Body, bytes_max: usize, timeout: Duration) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(Code::TOO_LARGE, format!("the body has more than {bytes_max} bytes"));
    if hyper::body::Body::size_hint(&body).lower() > bytes_max as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_over_limit(&error) => Err(too_large()),
        Ok(Err(_)) => {
            Err(Problem::new(Code::BAD_REQUEST, "the body broke off, or is not chunked as it says"))
        }
        Err(_) => Err(Problem::new(Code::BAD_REQUEST, "the body did not arrive in time")),
    }
}

fn is_over_limit(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}

/// A body as one JSON object: 400 if it is none, 422 if it says something else than was expected.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // A list would be read as the fields of the object in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let read = if is_object {
        serde_json::from_slice(body)
    } else {
        Err(serde::de::Error::custom("expected an object"))
    };
    read.map_err(|error: serde_json::Error| {
        if std::str::from_utf8(body).is_err() {
            return Problem::new(Code::BAD_BODY, "the body is not UTF-8");
        }
        // An error about the content may come before the text itself turns out to be none, or to be a trap.
        match serde_json::from_slice::<serde_json::Value>(body) {
            Ok(_) => Problem::new(Code::BAD_BODY, error.to_string()),
            Err(error) => Problem::new(Code::BAD_REQUEST, error.to_string()),
        }
    })
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a text for each parameter")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

impl Day {
    fn of(text: &str) -> Option<Self> {
        let date: Date = text.parse().ok()?;
        (date.to_string() == text).then_some(Self(date))
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::of(&text).ok_or_else(|| serde::de::Error::custom("the date is no day: expected YYYY-MM-DD"))
    }
}

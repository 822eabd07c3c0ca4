//! A sink as a configuration file describes it: one of three. Owns that each answers before the claim of a document ends.

use std::time::Duration;

use bates_core::{CLAIM_TTL, Sink};
use reqwest::Url;
use serde::Deserialize;

use crate::object::{self, ObjectDescription};
use crate::postgres::{self, PostgresDescription};
use crate::secret::Secret;
use crate::webhook::{self, WebhookDescription};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkDescription {
    /// A file or object for each document.
    Object(ObjectDescription),
    /// A signed request for each document.
    Webhook(WebhookDescription),
    /// A row for each document.
    Postgres(PostgresDescription),
}

impl SinkDescription {
    /// Does not connect: a sink that is down does not hold up the start.
    pub fn open(&self) -> Result<Box<dyn Sink>, SinkError> {
        match self {
            Self::Object(object) => object::open(object),
            Self::Webhook(webhook) => Ok(Box::new(webhook::open(webhook)?)),
            Self::Postgres(postgres) => Ok(Box::new(postgres::open(postgres)?)),
        }
    }
}

/// A wrong description. Must never hold a secret, nor an address that may hold one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SinkError {
    /// The field, as in `webhook.url`.
    pub field: &'static str,
    pub problem: Box<str>,
}

impl SinkError {
    pub(crate) fn new(field: &'static str, problem: impl Into<Box<str>>) -> Self {
        Self { field, problem: problem.into() }
    }
}

/// The rest of a claim when the timeout of a sink has passed.
const SPARE: Duration = Duration::from_secs(5);

/// Default timeout of a request or a statement.
pub(crate) const fn timeout_ms() -> u64 {
    10_000
}

/// Refuses a timeout that may pass after the claim of a document: then the outcome would be unknown.
pub(crate) fn check_timeout(field: &'static str, timeout_ms: u64) -> Result<(), SinkError> {
    let (max, claim) = (CLAIM_TTL.saturating_sub(SPARE).as_millis(), CLAIM_TTL.as_millis());
    if (1..=max).contains(&u128::from(timeout_ms)) {
        return Ok(());
    }
    let problem = format!(
        "it is {timeout_ms} and may be 1 to {max}: a document is claimed for {claim} ms and must be answered before"
    );
    Err(SinkError::new(field, problem))
}

/// The error of the parser gives the reason and nothing of the address. `instead` says where credentials belong.
pub(crate) fn parse_url(url: &Secret, field: &'static str, instead: &str) -> Result<Url, SinkError> {
    let url = Url::parse(url.reveal())
        .map_err(|error| SinkError::new(field, format!("this is no address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SinkError::new(field, format!("it holds a user or a password; {instead}")));
    }
    Ok(url)
}

//! The description of a sink in a configuration file. Ensures that each sink answers before the claim of a document ends.

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
    /// Does not connect: the server starts even if a sink is down.
    pub fn open(&self) -> Result<Box<dyn Sink>, SinkError> {
        match self {
            Self::Object(object) => object::open(object),
            Self::Webhook(webhook) => Ok(Box::new(webhook::open(webhook)?)),
            Self::Postgres(postgres) => Ok(Box::new(postgres::open(postgres)?)),
        }
    }
}

/// An invalid description. Must never hold a secret, nor an address that may hold one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SinkError {
    /// Such as `webhook.url`.
    pub field: &'static str,
    pub problem: Box<str>,
}

impl SinkError {
    pub(crate) fn new(field: &'static str, problem: impl Into<Box<str>>) -> Self {
        Self { field, problem: problem.into() }
    }
}

/// The longest timeout of a sink ends this long before the claim.
const CLAIM_MARGIN: Duration = Duration::from_secs(5);

/// Default timeout of a request or a statement.
pub(crate) const fn timeout_ms() -> u64 {
    10_000
}

/// Refuses a timeout that may end after the claim of a document: the outcome would be unknown.
pub(crate) fn check_timeout(field: &'static str, timeout_ms: u64) -> Result<(), SinkError> {
    let (max, claim) = (CLAIM_TTL.saturating_sub(CLAIM_MARGIN).as_millis(), CLAIM_TTL.as_millis());
    if (1..=max).contains(&u128::from(timeout_ms)) {
        return Ok(());
    }
    let expected = format!("expected 1 to {max}, because a document is claimed for {claim} ms");
    Err(SinkError::new(field, format!("{timeout_ms} is out of range: {expected}")))
}

/// The error of the parser does not show the address. `instead` says where credentials belong.
pub(crate) fn parse_url(url: &Secret, field: &'static str, instead: &str) -> Result<Url, SinkError> {
    let url = Url::parse(url.reveal())
        .map_err(|error| SinkError::new(field, format!("invalid address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SinkError::new(field, format!("it must not hold a user or a password: {instead}")));
    }
    Ok(url)
}

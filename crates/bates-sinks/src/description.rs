//! A sink in words, as a configuration file has it. Owns that there is exactly one of the three, and that each answers before
//! the claim of a document ends.

use std::sync::Arc;
use std::time::Duration;

use bates_core::{CLAIM_LASTS, Runtime, Sink, SystemRuntime};
use serde::Deserialize;

use crate::object::{self, ObjectDescription};
use crate::postgres::{self, PostgresDescription};
use crate::webhook::{self, WebhookDescription};

/// A sink as it is described: one of `object`, `webhook` and `postgres`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Description {
    /// A file or object for each document.
    Object(ObjectDescription),
    /// A signed request for each document.
    Webhook(WebhookDescription),
    /// A row for each document.
    Postgres(PostgresDescription),
}

impl Description {
    /// The sink. Nothing is connected to: one that is down now holds up no start.
    pub fn open(&self) -> Result<Box<dyn Sink>, SinkError> {
        self.open_with(Arc::new(SystemRuntime))
    }

    /// The sink, with a clock from which signed requests have their time.
    pub fn open_with(&self, clock: Arc<dyn Runtime>) -> Result<Box<dyn Sink>, SinkError> {
        match self {
            Self::Object(object) => object::open(object),
            Self::Webhook(webhook) => Ok(Box::new(webhook::open(webhook, clock)?)),
            Self::Postgres(postgres) => Ok(Box::new(postgres::open(postgres)?)),
        }
    }
}

/// A description that makes no sink: the field, and what is wrong with it. Must never hold a secret, nor an address that may
/// hold one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SinkError {
    /// The field, as in `webhook.url`.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: Box<str>,
}

impl SinkError {
    pub(crate) fn new(field: &'static str, problem: impl Into<Box<str>>) -> Self {
        Self { field, problem: problem.into() }
    }
}

/// What is left of a claim when a sink has used up its time.
const SPARE: Duration = Duration::from_secs(5);

/// A request or a statement lasts no longer if nobody says otherwise.
pub(crate) const fn timeout_ms() -> u64 {
    10_000
}

/// Refuses a timeout that the claim of a document would not outlast: nothing would be known of what the sink was doing.
pub(crate) fn check_timeout(field: &'static str, timeout_ms: u64) -> Result<(), SinkError> {
    let (max, claim) = (CLAIM_LASTS.saturating_sub(SPARE).as_millis(), CLAIM_LASTS.as_millis());
    if (1..=max).contains(&u128::from(timeout_ms)) {
        return Ok(());
    }
    let problem = format!(
        "it is {timeout_ms} and may be 1 to {max}: a document is claimed for {claim} ms and must be answered before"
    );
    Err(SinkError::new(field, problem))
}

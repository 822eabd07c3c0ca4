//! A sink in words, as a configuration file has it. Owns that there is exactly one of the three.

use std::sync::Arc;

use bates_core::{Runtime, Sink, SystemRuntime};
use serde::Deserialize;

use crate::error::SinkError;
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

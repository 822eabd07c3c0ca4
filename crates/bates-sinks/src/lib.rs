//! Where documents go: one module per sink.
//!
//! Owns what a delivery looks like outside, and what each sink must have done before a document counts as delivered.
//! Must never take an address from a request: only the configuration describes sinks. Must never show a secret.

mod description;
mod document_source;
mod object;
mod payload;
mod postgres;
mod secret;
mod webhook;

pub use description::{SinkDescription, SinkError};
pub use document_source::DocumentSourceDescription;
pub use object::ObjectDescription;
pub use postgres::PostgresDescription;
pub use secret::Secret;
pub use webhook::WebhookDescription;

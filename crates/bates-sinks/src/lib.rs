//! Sinks, to which documents are delivered: one module each.
//!
//! Owns the format of a delivery, and what each sink must have done before a document counts as delivered.
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

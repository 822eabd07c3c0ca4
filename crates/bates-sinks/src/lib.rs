//! Where documents go: one module per sink.
//!
//! Owns what a delivery looks like outside, and what each sink must have done before a document counts as delivered.
//! Must never take an address from a request: only the configuration describes sinks. Must never show a secret.

mod description;
mod object;
mod payload;
mod postgres;
mod saved;
mod secret;
mod webhook;

pub use description::{Description, SinkError};
pub use object::ObjectDescription;
pub use postgres::PostgresDescription;
pub use saved::DocumentsDescription;
pub use secret::Secret;
pub use webhook::WebhookDescription;

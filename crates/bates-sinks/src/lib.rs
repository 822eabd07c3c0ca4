//! Where documents go: one module a sink.
//!
//! Owns what a delivery looks like outside, and what each sink must have done before a document counts as delivered.
//! Must never take an address from a request: sinks are described by whoever runs Bates. Must never show a secret.

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

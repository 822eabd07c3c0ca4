//! The HTTP API.
//!
//! A request passes `listener`, `admission` and `routes`; `request` and `query` parse it, and the file of its resource
//! answers it. Errors are answered by `problem`. Must never hold a body or an answer larger than its limit.

mod admission;
mod audit;
mod documents;
mod gaps;
mod health;
mod lease;
mod listener;
mod meter;
mod metrics;
mod next;
mod openapi;
mod openg2p;
mod operations;
mod permit;
mod pools;
mod problem;
mod query;
mod request;
mod routes;
mod scopes;
mod security;
mod series;
mod tokens;
mod trace;
mod write_timeout;

pub use admission::Settings;
pub use listener::serve;
pub use openg2p::{id_length, is_id_type_name};

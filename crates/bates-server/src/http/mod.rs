//! HTTP: numbers as JSON or as lines, and what is known of series, scopes and identifiers.
//!
//! A request comes through `listener`, `front` and `routes`, is read by `ask` and `query`, and answered by one file a
//! family or by `problem`. Must never hold a body or an answer larger than its bound.

mod ask;
mod audit;
mod documents;
mod front;
mod gaps;
mod health;
mod lease;
mod listener;
mod metrics;
mod next;
mod openapi;
mod openg2p;
mod patient;
mod pools;
mod problem;
mod query;
mod routes;
mod scopes;
mod series;
mod trace;

pub use front::Settings;
pub use listener::serve;
pub use openg2p::id_length;

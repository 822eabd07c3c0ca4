//! HTTP: numbers as JSON or as lines, and what is known of series, scopes and identifiers.
//!
//! The way of a request: `listener` takes the connection, `front` lets it in or not, `routes` finds who answers,
//! `ask` reads what was asked, one file a family answers, and `problem` says what went wrong. Must never hold a
//! body or an answer larger than its bound.

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

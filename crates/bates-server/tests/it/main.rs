//! Tests of the Redis protocol, as a client sees it.
#![allow(clippy::unwrap_used)]

mod admission;
mod bad_input;
mod claims;
mod conversation;
mod handshakes;
mod hot_path;
mod oracle;
mod port;
mod properties;
mod redis;
mod slow_clients;
mod transactions;

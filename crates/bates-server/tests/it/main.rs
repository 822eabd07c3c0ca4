//! What the Redis protocol promises, seen from outside.
#![allow(clippy::unwrap_used)]

mod admission;
mod bad_input;
mod claims;
mod conversation;
mod hot_path;
mod oracle;
mod patience;
mod port;
mod properties;
mod redis;

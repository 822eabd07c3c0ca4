//! What the wire layer of the Redis protocol promises, seen from outside.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod claims;
mod hot_path;
mod oracle;
mod properties;
mod redis;

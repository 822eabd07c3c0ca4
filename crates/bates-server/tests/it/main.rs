//! What the wire layer of the Redis protocol promises, seen from outside.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod claims;
mod properties;

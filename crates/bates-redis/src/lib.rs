//! Shared pools in Redis: lists that any program may `LPOP` from, pushed by Bates.
//!
//! Owns how a list, its marker and its lock lie in Redis, and that a chunk is pushed once or not at all. When a pool
//! is filled, and from which positions, is the core's affair. Must never be the only place where a number's fate is
//! known: Redis may forget everything at any time.

mod description;
mod planted;
mod pool;
mod push;
mod reply;
mod scripts;

pub use description::{Description, PoolError};
pub use pool::RedisPool;

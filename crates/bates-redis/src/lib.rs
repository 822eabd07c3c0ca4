//! Shared pools in Redis: lists that any program may `LPOP` from, pushed by Bates.
//!
//! Owns the keys of a list, its marker and its lock, and that a chunk is pushed once or not at all. The core decides when
//! a pool is filled. Must never be the only place that knows what became of a number: Redis may forget everything.

mod description;
mod planted;
mod pool;
mod push;
mod reply;
mod scripts;

pub use description::{PoolDescription, PoolDescriptionError};
pub use pool::RedisPool;

//! Shared pools in Redis: lists that any program may `LPOP` from, pushed by Bates.
//!
//! Owns the keys of a list, its marker and its lock, and pushes a chunk once or not at all. The core decides when a pool is
//! filled. Must never hold the only record of a number, because Redis may lose everything.

mod description;
mod planted;
mod pool;
mod push;
mod reply;
mod scripts;

pub use description::{PoolDescription, PoolDescriptionError};
pub use pool::RedisPool;

//! Shared pools: lists of numbers on a server that may forget, kept full for programs that take from them directly.
//!
//! Owns when a pool is filled, from which positions, and when it is begun anew. What could go wrong, and why it does
//! not:
//! - a number twice in a list: each chunk is pushed by a comparison with a marker beside the list, which moves with it;
//! - a number that came back with an old memory of the server: the epoch in the store moves on and the list is emptied
//!   before anything is pushed, because a marker is good for one memory of the server alone;
//! - a filler that slept: what was granted before something that was pushed is refused.

mod fill;
mod filled;
mod filler;
mod kept;
mod list;
mod machine;
mod settings;
mod watched;

pub use crate::ledger::{Pool, Renewal, Server, Settling};
pub use filled::{FillError, Filled};
pub use filler::{Filler, Telling};
pub use kept::{KeptPools, PoolTally};
pub use list::{Asking, ListLook, Looked, Push, Refusal, SharedPool};
pub use machine::{PoolLook, PoolRefused};
pub use settings::{Amount, PoolSettings, ScopeMatch};
